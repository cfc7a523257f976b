// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels for uint8_t.
#include "elementwise-inl.hpp"

#define UNARY(function, F) GABLE_INSTANTIATE_UNARY(uint8_t, F)
#define BINARY(function, F) GABLE_INSTANTIATE_BINARY(uint8_t, F)
GABLE_UNARY_NUMERIC_OPS(UNARY)
GABLE_BINARY_NUMERIC_OPS(BINARY)
#define PREDICATE(function, F) GABLE_INSTANTIATE_PREDICATE(uint8_t, F)
#define COMPARE(function, F) GABLE_INSTANTIATE_COMPARE(uint8_t, F)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
