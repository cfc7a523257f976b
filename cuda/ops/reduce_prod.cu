// SPDX-License-Identifier: Apache-2.0
// Products.
#include "reduce.cuh"

GABLE_CUDA_KERNEL_ALL(ProdArgs)
