// SPDX-License-Identifier: Apache-2.0
// Sums, means, products.
#include "reduce-inl.hpp"

namespace gable {
GABLE_CPU_KERNEL_ALL(SumArgs)
GABLE_CPU_KERNEL_FLOATS(MeanArgs)
GABLE_CPU_KERNEL_ALL(ProdArgs)
#define WIDE(...) GABLE_CPU_KERNEL(ReduceArgs<__VA_ARGS__>)
GABLE_WIDE_REDUCE_KERNELS(WIDE)
}  // namespace gable
