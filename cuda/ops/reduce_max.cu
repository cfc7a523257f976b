// SPDX-License-Identifier: Apache-2.0
// Maxima.
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(MaxArgs)
