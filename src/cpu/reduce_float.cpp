// SPDX-License-Identifier: Apache-2.0
// var, std, norm, logsumexp and the gradients of reductions, of float.
#include "reduce-inl.hpp"

namespace gable {
#define FLOAT(...) GABLE_CPU_KERNEL(ReduceArgs<__VA_ARGS__>)
#define BACKWARD(...) GABLE_CPU_KERNEL(ReduceBackwardArgs<__VA_ARGS__>)
GABLE_REDUCE_KERNELS_OF(FLOAT, BACKWARD, float)
}  // namespace gable
