// SPDX-License-Identifier: Apache-2.0
// Sums and means.
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(SumArgs)
GABLE_CUDA_KERNEL_FLOATS(MeanArgs)
