// SPDX-License-Identifier: Apache-2.0
// Binary elementwise kernels, their gradients and comparisons for double.
#include "elementwise.cuh"

#define BINARY(function, F) GABLE_CUDA_BINARY(double, F)
#define BINARY_BACKWARD(function, F) GABLE_CUDA_BINARY_BACKWARD(double, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(double, F)
GABLE_BINARY_FLOAT_OPS(BINARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
GABLE_BINARY_FLOAT_OPS(BINARY_BACKWARD)
GABLE_BINARY_NUMERIC_OPS(BINARY_BACKWARD)
GABLE_COMPARE_OPS(COMPARE)
