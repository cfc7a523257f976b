// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels for int32.
#include "elementwise.cuh"

#define UNARY(function, F) GABLE_CUDA_UNARY(int32_t, F)
#define BINARY(function, F) GABLE_CUDA_BINARY(int32_t, F)
#define PREDICATE(function, F) GABLE_CUDA_PREDICATE(int32_t, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(int32_t, F)
GABLE_UNARY_NUMERIC_OPS(UNARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
