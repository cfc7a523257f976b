// SPDX-License-Identifier: Apache-2.0
// any().
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(AnyArgs)
