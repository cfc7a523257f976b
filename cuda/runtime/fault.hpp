// SPDX-License-Identifier: Apache-2.0
// Faults that kernels find in their input, reported at the next synchronisation.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gable/core/device.hpp"

namespace gable::cuda {

/// The first bad index since the last report, in host memory that the device writes. The claim to
/// it is in device memory: not every bus has atomics.
struct IndexFault {
  unsigned* claim = nullptr;  ///< on the device; 0 until a thread takes it
  unsigned complete = 0;
  const char* op = nullptr;
  int64_t value = 0;
  int64_t bound = 0;
  int64_t position = 0;  ///< row-major
};

/// A device's record, for kernels to fill.
[[nodiscard]] IndexFault* index_fault(Device device);
/// Throws IndexError for a complete record and empties it; to be called when the stream is idle.
void report_device_faults(Device device);

/// Error of asking for a kernel's attributes on the current device: whether the build has code
/// that the device can run.
[[nodiscard]] cudaError_t probe_image();

#ifdef __CUDACC__
/// Keeps the first fault.
__device__ inline void record_fault(IndexFault* fault, const char* op, int64_t value, int64_t bound,
                                    int64_t position) {
  if (atomicCAS(fault->claim, 0U, 1U) != 0U) return;
  fault->op = op;
  fault->value = value;
  fault->bound = bound;
  fault->position = position;
  __threadfence_system();
  *static_cast<volatile unsigned*>(&fault->complete) = 1U;
}
#endif

}  // namespace gable::cuda
