// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels for int64_t.
#include "elementwise-inl.hpp"

#define UNARY(function, F) GABLE_INSTANTIATE_UNARY(int64_t, F)
#define BINARY(function, F) GABLE_INSTANTIATE_BINARY(int64_t, F)
GABLE_UNARY_NUMERIC_OPS(UNARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
#define PREDICATE(function, F) GABLE_INSTANTIATE_PREDICATE(int64_t, F)
#define COMPARE(function, F) GABLE_INSTANTIATE_COMPARE(int64_t, F)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
