// SPDX-License-Identifier: Apache-2.0
// Gradients of the unary elementwise operators for half.
#include "elementwise.cuh"

#define UNARY_BACKWARD(function, F) GABLE_CUDA_UNARY_BACKWARD(gable::half, F)
GABLE_UNARY_FLOAT_OPS(UNARY_BACKWARD)
GABLE_UNARY_NUMERIC_OPS(UNARY_BACKWARD)
