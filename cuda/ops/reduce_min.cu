// SPDX-License-Identifier: Apache-2.0
// Minima.
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(MinArgs)
