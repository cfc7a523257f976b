// SPDX-License-Identifier: Apache-2.0
// Binary elementwise kernels, their gradients and comparisons for float.
#include "elementwise.cuh"

#define BINARY(function, F) GABLE_CUDA_BINARY(float, F)
#define BINARY_BACKWARD(function, F) GABLE_CUDA_BINARY_BACKWARD(float, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(float, F)
GABLE_BINARY_FLOAT_OPS(BINARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
GABLE_BINARY_FLOAT_OPS(BINARY_BACKWARD)
GABLE_BINARY_NUMERIC_OPS(BINARY_BACKWARD)
GABLE_COMPARE_OPS(COMPARE)
