// SPDX-License-Identifier: Apache-2.0
// Fault records, and the probe for kernels that fit the device.
#include "runtime/fault.hpp"

#include <array>
#include <mutex>

#include "runtime/context.hpp"

namespace gable::cuda {

namespace {

__global__ void probe_kernel() {}

struct Record {
  std::once_flag once;
  IndexFault* fault = nullptr;
};

Record& record(Device device) {
  static auto* all = new std::array<Record, 64>;  // contexts allow no more devices
  return (*all)[static_cast<size_t>(context(device).index)];
}

}  // namespace

cudaError_t probe_image() {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(&attributes, probe_kernel);
}

IndexFault* index_fault(Device device) {
  Record& r = record(device);
  std::call_once(r.once, [&] {
    void* memory = nullptr;
    const DeviceGuard guard(device.index);
    GABLE_CUDA_CHECK(cudaHostAlloc(&memory, sizeof(IndexFault), cudaHostAllocMapped));
    auto* fault = new (memory) IndexFault;
    GABLE_CUDA_CHECK(cudaMalloc(&fault->claim, sizeof(unsigned)));
    GABLE_CUDA_CHECK(cudaMemset(fault->claim, 0, sizeof(unsigned)));
    GABLE_CUDA_CHECK(cudaDeviceSynchronize());
    r.fault = fault;
  });
  return r.fault;
}

void report_device_faults(Device device) {
  const Record& r = record(device);
  if (r.fault == nullptr) return;
  auto& complete = *static_cast<volatile unsigned*>(&r.fault->complete);
  if (complete == 0U) return;
  const IndexFault fault = *r.fault;
  complete = 0U;
  const DeviceGuard guard(device.index);
  GABLE_CUDA_CHECK(cudaMemset(fault.claim, 0, sizeof(unsigned)));
  GABLE_CUDA_CHECK(cudaDeviceSynchronize());
  fail<IndexError>(fault.op, "expected indices in [0, ", fault.bound, "), got ", fault.value,
                   " at row-major position ", fault.position,
                   " (found on the device, reported at this synchronisation)");
}

}  // namespace gable::cuda
