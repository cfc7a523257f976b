// SPDX-License-Identifier: Apache-2.0
// Predicates and comparisons of bool.
#include "elementwise.cuh"

#define PREDICATE(function, F) GABLE_CUDA_PREDICATE(bool, F)
#define COMPARE(function, F) GABLE_CUDA_COMPARE(bool, F)
GABLE_PREDICATE_ALL_OPS(PREDICATE)
GABLE_COMPARE_OPS(COMPARE)
