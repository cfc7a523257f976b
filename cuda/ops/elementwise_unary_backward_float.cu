// SPDX-License-Identifier: Apache-2.0
// Gradients of the unary elementwise operators for float.
#include "elementwise.cuh"

#define UNARY_BACKWARD(function, F) GABLE_CUDA_UNARY_BACKWARD(float, F)
GABLE_UNARY_FLOAT_OPS(UNARY_BACKWARD)
GABLE_UNARY_NUMERIC_OPS(UNARY_BACKWARD)
