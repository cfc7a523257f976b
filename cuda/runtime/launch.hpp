// SPDX-License-Identifier: Apache-2.0
// cuda::launch: the only kernel launch of the library.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "gable/core/device.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

/// Grid and block of a launch; `shared` is dynamic shared memory in bytes.
struct Grid {
  dim3 blocks;
  dim3 threads;
  size_t shared = 0;
};

/// ceil(n / unit) as a launch dimension. Throws Error above CUDA's limit of 2^31 - 1.
[[nodiscard]] inline unsigned blocks_for(int64_t n, int64_t unit) {
  const int64_t blocks = (n + unit - 1) / unit;
  check<Error>(blocks < (int64_t{1} << 31), current_op(), "expected fewer than 2^31 blocks, got ",
               blocks);
  return static_cast<unsigned>(blocks);
}

/// Queues `kernel` on the stream and checks the launch; the arguments are converted to the
/// kernel's parameters. A grid without blocks is no launch.
template <class... Parameters, class... Arguments>
void launch(const Stream& stream, const Grid& grid, void (*kernel)(Parameters...),
            Arguments&&... arguments) {
  if (grid.blocks.x == 0 || grid.blocks.y == 0 || grid.blocks.z == 0) return;
  if (grid.shared > 48 * 1024) {
    GABLE_CUDA_CHECK(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                          cudaFuncAttributeMaxDynamicSharedMemorySize,
                                          static_cast<int>(grid.shared)));
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = grid.shared;
  config.stream = native(stream);
  GABLE_CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...));
}

}  // namespace gable::cuda
