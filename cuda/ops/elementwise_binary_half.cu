// SPDX-License-Identifier: Apache-2.0
// Binary elementwise kernels, their gradients and comparisons for half.
#include "elementwise.cuh"

#define BINARY(function, F) GABLE_CUDA_BINARY(gable::half, F)
#define BINARY_BACKWARD(function, F) GABLE_CUDA_BINARY_BACKWARD(gable::half, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(gable::half, F)
GABLE_BINARY_FLOAT_OPS(BINARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
GABLE_BINARY_FLOAT_OPS(BINARY_BACKWARD)
GABLE_BINARY_NUMERIC_OPS(BINARY_BACKWARD)
GABLE_COMPARE_OPS(COMPARE)
