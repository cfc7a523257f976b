// SPDX-License-Identifier: Apache-2.0
// Sums and means with results wider than x.
#include "reduce.cuh"

#define WIDE(...) GABLE_CUDA_KERNEL(gable::ReduceArgs<__VA_ARGS__>)
namespace gable {
GABLE_WIDE_REDUCE_KERNELS(WIDE)
}  // namespace gable
