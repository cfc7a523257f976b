// SPDX-License-Identifier: Apache-2.0
// Device contexts, streams of threads, errors, operator ranges.
#include "runtime/context.hpp"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <string>

#include "gable/memory/cuda.hpp"
#include "runtime/fault.hpp"

namespace gable::cuda {

namespace {

constexpr int kMaxDevices = 64;

// How many devices can be used, and if none, why, in one line.
struct Availability {
  int count = 0;
  std::string reason;
};

std::string version_text(int version) { return concat(version / 1000, ".", version % 1000 / 10); }

Availability probe() {
  Availability result;
  const cudaError_t status = cudaGetDeviceCount(&result.count);
  if (status != cudaSuccess) {
    ignore_result(cudaGetLastError());
    result.count = 0;
    int driver = 0;
    int runtime = 0;
    ignore_result(cudaDriverGetVersion(&driver));
    ignore_result(cudaRuntimeGetVersion(&runtime));
    if (driver == 0)
      result.reason = "no NVIDIA driver is loaded";
    else if (driver / 1000 < runtime / 1000)
      result.reason = concat("the driver supports CUDA ", version_text(driver),
                             ", this build of gable needs ", runtime / 1000, ".0 or later");
    else
      result.reason = cudaGetErrorString(status);
  } else if (result.count == 0) {
    result.reason = "the driver shows no device (is CUDA_VISIBLE_DEVICES set?)";
  }
  result.count = std::min(result.count, kMaxDevices);
  return result;
}

const Availability& availability() {
  static const Availability result = probe();
  return result;
}

struct Slot {
  std::once_flag once;
  Context context;
};

std::array<Slot, kMaxDevices>& slots() {
  static auto* all = new std::array<Slot, kMaxDevices>;
  return *all;
}

void open_context(Context& c, int index) {
  const DeviceGuard guard(index);
  cudaDeviceProp properties = {};
  GABLE_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  // Kernels of another generation than the build's would fail at their first launch, far from
  // the cause.
  const cudaError_t fits = probe_image();
  if (fits != cudaSuccess) {
    ignore_result(cudaGetLastError());
    fail<DeviceError>("cuda", "expected a device that this build has kernels for, got ",
                      properties.name, " of compute capability ", properties.major, ".",
                      properties.minor, ": ", cudaGetErrorString(fits),
                      "; set CMAKE_CUDA_ARCHITECTURES");
  }
  c.index = index;
  c.multiprocessors = properties.multiProcessorCount;
  c.threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor;
  c.shared_per_block = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  c.l2_bytes = properties.l2CacheSize;
  c.compute_major = properties.major;
  c.compute_minor = properties.minor;
  GABLE_CUDA_CHECK(cudaStreamCreateWithFlags(&c.main_stream, cudaStreamNonBlocking));
}

thread_local std::array<cudaStream_t, kMaxDevices> scoped_streams{};
thread_local const char* running_op = nullptr;

}  // namespace

void check_result(cudaError_t result, const char* expression, std::source_location where) {
  if (result == cudaSuccess) return;
  ignore_result(cudaGetLastError());
  throw CudaError(current_op(),
                  concat("expected success of ", expression, ", got ", cudaGetErrorName(result),
                         ": ", cudaGetErrorString(result)),
                  where);
}

void ignore_result(cudaError_t result) noexcept {
  if (result != cudaSuccess) static_cast<void>(cudaGetLastError());
}

DeviceGuard::DeviceGuard(int index) {
  int now = 0;
  GABLE_CUDA_CHECK(cudaGetDevice(&now));
  if (now == index) return;
  GABLE_CUDA_CHECK(cudaSetDevice(index));
  previous_ = now;
}

DeviceGuard::~DeviceGuard() {
  if (previous_ >= 0) ignore_result(cudaSetDevice(previous_));
}

const Context& context(Device device) {
  const Availability& a = availability();
  check<DeviceError>(a.count > 0, current_op(),
                     "expected a usable CUDA device, got none: ", a.reason);
  check<DeviceError>(device.type == DeviceType::cuda && device.index >= 0 && device.index < a.count,
                     current_op(), "expected cuda:0 to cuda:", a.count - 1, ", got ", device);
  Slot& slot = slots()[static_cast<size_t>(device.index)];
  std::call_once(slot.once, [&] { open_context(slot.context, device.index); });
  return slot.context;
}

OpRange::OpRange(const char* op, Device device) : guard_(device.index), previous_(running_op) {
  running_op = op;
  nvtxRangePushA(op);
}

OpRange::~OpRange() {
  nvtxRangePop();
  running_op = previous_;
}

const char* current_op() noexcept { return running_op != nullptr ? running_op : "cuda"; }

// --- the public face

int device_count() { return availability().count; }

std::string unavailable_reason() { return availability().reason; }

std::string device_name(Device device) {
  const Context& c = context(device);
  cudaDeviceProp properties = {};
  GABLE_CUDA_CHECK(cudaGetDeviceProperties(&properties, c.index));
  return properties.name;
}

Stream current_stream(Device device) {
  const Context& c = context(device);
  const cudaStream_t scoped = scoped_streams[static_cast<size_t>(c.index)];
  return {device, scoped != nullptr ? scoped : c.main_stream};
}

void synchronize(Device device) {
  const Context& c = context(device);
  const DeviceGuard guard(c.index);
  GABLE_CUDA_CHECK(cudaDeviceSynchronize());
  report_device_faults(device);
}

StreamScope::StreamScope(const Stream& stream) : stream_(stream) {
  cudaStream_t& slot = scoped_streams[static_cast<size_t>(context(stream.device).index)];
  previous_ = slot;
  slot = native(stream);
}

StreamScope::~StreamScope() {
  scoped_streams[static_cast<size_t>(stream_.device.index)] = static_cast<cudaStream_t>(previous_);
}

}  // namespace gable::cuda
