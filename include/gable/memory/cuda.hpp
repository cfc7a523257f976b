// SPDX-License-Identifier: Apache-2.0
// What a program asks of the CUDA backend besides operators; no CUDA headers. In builds without
// the backend the questions answer "none" and the rest throws DeviceError.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gable/core/device.hpp"
#include "gable/memory/storage.hpp"

namespace gable::cuda {

/// Number of usable CUDA devices; 0 in builds without CUDA.
[[nodiscard]] int device_count();
/// Why there is none, in one line; empty if there is one.
[[nodiscard]] std::string unavailable_reason();
/// "NVIDIA H200". Throws DeviceError.
[[nodiscard]] std::string device_name(Device device);

/// The calling thread's current stream on a device: the device's main stream, which all threads
/// share, unless a StreamScope says otherwise. Throws DeviceError.
[[nodiscard]] Stream current_stream(Device device);
/// Waits for all work of the device. Throws CudaError for faults that kernels met, and IndexError
/// for bad indices that an operator was given since the last call.
void synchronize(Device device);

/// Makes `stream` (a cudaStream_t of the caller, which must outlive all its work) current on this
/// thread for a scope. Memory is handed out again in stream order: a tensor that another stream
/// still reads must be kept until that stream is done.
class StreamScope {
 public:
  explicit StreamScope(const Stream& stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  Stream stream_;
  void* previous_ = nullptr;
};

/// Lets float32 matrix products and convolutions round their inputs to TF32 (10 bits of mantissa)
/// for the tensor cores. Off by default; process-wide.
void set_allow_tf32(bool allow);
[[nodiscard]] bool allow_tf32();

/// Engine of this thread's last convolution kernel on a CUDA device: "direct" (depthwise), "cudnn",
/// or "im2col" (a product of cuBLASLt, also where no columns are needed); empty if there was none.
/// Chosen once a geometry, by a short measurement unless the work is small. Two environment
/// variables are read at the first convolution: GABLE_CONV_ENGINE=im2col|cudnn|direct takes one
/// engine wherever it can run; GABLE_CONV_MEASURE=0 chooses without measuring, alike in every run.
[[nodiscard]] std::string last_conv_engine();

/// Page-locked host memory, which copies to and from devices asynchronously and at full speed.
/// The storage's device is the CPU.
[[nodiscard]] Storage pinned_storage(int64_t bytes);

/// One block of device memory, as the allocator sees it.
struct MemoryBlock {
  const char* op;     ///< operator that was running when it was handed out; "cuda" if none was
  int64_t bytes = 0;  ///< asked for
  int64_t size = 0;   ///< taken from the segment
  bool in_use = false;
};
/// All blocks of a device, largest first.
[[nodiscard]] std::vector<MemoryBlock> memory_table(Device device);

}  // namespace gable::cuda
