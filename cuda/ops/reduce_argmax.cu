// SPDX-License-Identifier: Apache-2.0
// argmax.
#include "reduce_arg.cuh"

GABLE_CUDA_KERNEL_ALL(ArgMaxArgs)
