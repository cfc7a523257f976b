// SPDX-License-Identifier: Apache-2.0
// argmin.
#include "reduce_arg.cuh"

GABLE_CUDA_KERNEL_ALL(ArgMinArgs)
