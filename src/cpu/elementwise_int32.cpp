// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels for int32_t.
#include "elementwise-inl.hpp"

#define UNARY(function, F) GABLE_INSTANTIATE_UNARY(int32_t, F)
#define BINARY(function, F) GABLE_INSTANTIATE_BINARY(int32_t, F)
GABLE_UNARY_NUMERIC_OPS(UNARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
#define PREDICATE(function, F) GABLE_INSTANTIATE_PREDICATE(int32_t, F)
#define COMPARE(function, F) GABLE_INSTANTIATE_COMPARE(int32_t, F)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
