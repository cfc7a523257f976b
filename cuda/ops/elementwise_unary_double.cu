// SPDX-License-Identifier: Apache-2.0
// Unary elementwise kernels for double.
#include "elementwise.cuh"

#define UNARY(function, F) GABLE_CUDA_UNARY(double, F)
#define PREDICATE(function, F) GABLE_CUDA_PREDICATE(double, F)
GABLE_UNARY_FLOAT_OPS(UNARY)
GABLE_UNARY_NUMERIC_OPS(UNARY)
GABLE_PREDICATE_FLOAT_OPS(PREDICATE)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
