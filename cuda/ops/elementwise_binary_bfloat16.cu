// SPDX-License-Identifier: Apache-2.0
// Binary elementwise kernels, their gradients and comparisons for bfloat16.
#include "elementwise.cuh"

#define BINARY(function, F) GABLE_CUDA_BINARY(gable::bfloat16, F)
#define BINARY_BACKWARD(function, F) GABLE_CUDA_BINARY_BACKWARD(gable::bfloat16, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(gable::bfloat16, F)
GABLE_BINARY_FLOAT_OPS(BINARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
GABLE_BINARY_FLOAT_OPS(BINARY_BACKWARD)
GABLE_BINARY_NUMERIC_OPS(BINARY_BACKWARD)
GABLE_COMPARE_OPS(COMPARE)
