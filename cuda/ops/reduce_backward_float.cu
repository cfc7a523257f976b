// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions of float.
#include "reduce.cuh"

#define FLOAT(...)
#define BACKWARD(...) GABLE_CUDA_KERNEL(gable::ReduceBackwardArgs<__VA_ARGS__>)
namespace gable {
GABLE_REDUCE_KERNELS_OF(FLOAT, BACKWARD, float)
}  // namespace gable
