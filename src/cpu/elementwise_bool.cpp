// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels for bool.
#include "elementwise-inl.hpp"

#define PREDICATE(function, F) GABLE_INSTANTIATE_PREDICATE(bool, F)
#define COMPARE(function, F) GABLE_INSTANTIATE_COMPARE(bool, F)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
