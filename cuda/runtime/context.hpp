// SPDX-License-Identifier: Apache-2.0
// One context a device: properties, main stream, memory. And what stands around every operator.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "gable/core/device.hpp"
#include "gable/memory/allocator.hpp"
#include "runtime/error.hpp"

namespace gable::cuda {

/// Makes a device current on this thread for a scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int index);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = -1;  // -1: nothing to restore
};

/// What kernels ask about a device.
struct Context {
  int index = 0;
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int64_t shared_per_block = 0;  ///< largest dynamic shared memory that a kernel may opt into
  int64_t l2_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  cudaStream_t main_stream = nullptr;  ///< non-blocking; what current_stream() is by default
};

/// Never destroyed: static tensors may outlive any other static. Throws DeviceError, with the
/// reason in one line, if the device cannot be used.
[[nodiscard]] const Context& context(Device device);

/// The CUDA stream behind a Stream.
[[nodiscard]] inline cudaStream_t native(const Stream& stream) {
  return static_cast<cudaStream_t>(stream.native);
}

/// Names the running operator for errors and NVTX, and makes its device current.
class OpRange {
 public:
  OpRange(const char* op, Device device);
  ~OpRange();
  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;

 private:
  DeviceGuard guard_;
  const char* previous_;
};
/// Name of the running operator on this thread, "cuda" outside of any.
[[nodiscard]] const char* current_op() noexcept;

}  // namespace gable::cuda
