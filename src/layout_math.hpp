// SPDX-License-Identifier: Apache-2.0
// Checked 64-bit arithmetic of layouts.
#pragma once

#include <cstdint>

#include "gable/core/layout.hpp"

namespace gable::detail {

inline int64_t checked_mul(int64_t a, int64_t b, Where where) {
  int64_t r = 0;
  check(!__builtin_mul_overflow(a, b, &r), where, "expected products within 64 bits, got ", a,
        " * ", b);
  return r;
}

inline int64_t checked_add(int64_t a, int64_t b, Where where) {
  int64_t r = 0;
  check(!__builtin_add_overflow(a, b, &r), where, "expected sums within 64 bits, got ", a, " + ",
        b);
  return r;
}

// For strides that no element needs: any value will do where the product or sum is too large.
inline int64_t mul_or_one(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? 1 : r;
}
inline int64_t add_or_one(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? 1 : r;
}

// True if a dimension of stride `outer` continues one of `size` elements of stride `inner`.
inline bool continues(int64_t outer, int64_t size, int64_t inner) {
  int64_t r = 0;
  return !__builtin_mul_overflow(size, inner, &r) && r == outer;
}

// Sizes >= 0 and their product within 64 bits even if a zero hides it.
inline void check_shape(const Shape& shape, Where where) {
  int64_t n = 1;
  for (int64_t s : shape) {
    check(s >= 0, where, "expected sizes >= 0, got shape ", shape);
    if (s > 0)
      check(!__builtin_mul_overflow(n, s, &n), where,
            "expected fewer than 2^63 elements, got shape ", shape);
  }
}

}  // namespace gable::detail
