// SPDX-License-Identifier: Apache-2.0
// all().
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(AllArgs)
