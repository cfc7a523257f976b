// SPDX-License-Identifier: Apache-2.0
// Variances, norms, logsumexp and counts of half.
#include "reduce.cuh"

#define FLOAT(...) GABLE_CUDA_KERNEL(gable::ReduceArgs<__VA_ARGS__>)
#define BACKWARD(...)
namespace gable {
GABLE_REDUCE_KERNELS_OF(FLOAT, BACKWARD, half)
}  // namespace gable
