// SPDX-License-Identifier: Apache-2.0
// Events.
#include "gable/memory/event.hpp"
#include "gable/memory/cuda.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

namespace {
cudaEvent_t handle(void* native) { return static_cast<cudaEvent_t>(native); }
}  // namespace

Event::Event(Device device) : device_(device) {
  const DeviceGuard guard(context(device).index);
  cudaEvent_t event = nullptr;
  GABLE_CUDA_CHECK(cudaEventCreate(&event));
  native_ = event;
}

Event::~Event() { ignore_result(cudaEventDestroy(handle(native_))); }

void Event::record() {
  const DeviceGuard guard(device_.index);
  GABLE_CUDA_CHECK(cudaEventRecord(handle(native_), native(current_stream(device_))));
}

void Event::synchronize() const { GABLE_CUDA_CHECK(cudaEventSynchronize(handle(native_))); }

void Event::block(const Stream& stream) const {
  const DeviceGuard guard(stream.device.index);
  GABLE_CUDA_CHECK(cudaStreamWaitEvent(native(stream), handle(native_)));
}

double Event::milliseconds(const Event& start, const Event& stop) {
  float time = 0;
  GABLE_CUDA_CHECK(cudaEventElapsedTime(&time, handle(start.native_), handle(stop.native_)));
  return time;
}

}  // namespace gable::cuda
