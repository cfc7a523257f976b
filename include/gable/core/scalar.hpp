// SPDX-License-Identifier: Apache-2.0
// Scalar: a number of any arithmetic type, converted to the element type where it is used.
#pragma once

#include <concepts>
#include <cstdint>

#include "gable/core/dtype.hpp"

namespace gable {

/// Keeps both a double and an int64, so that large integers and fractions both survive.
class Scalar {
 public:
  template <class N>
  requires(std::integral<N> ||
           std::floating_point<N>) constexpr Scalar(N value)  // NOLINT(google-explicit-constructor)
      : real_(static_cast<double>(value)),
        integer_(std::integral<N> ? static_cast<int64_t>(value) : truncate(real_)) {}
  template <SmallFloat N>
  constexpr Scalar(N value)  // NOLINT(google-explicit-constructor)
      : Scalar(static_cast<float>(value)) {}
  template <class V>
  [[nodiscard]] GABLE_HD constexpr V get() const {
    if constexpr (std::integral<V>)
      return static_cast<V>(integer_);
    else if constexpr (std::same_as<V, half> || std::same_as<V, bfloat16>)
      return V(static_cast<float>(real_));
    else
      return static_cast<V>(real_);
  }
  /// Integers wrap; also right for unsigned values, whose own negative is not.
  friend constexpr Scalar operator-(Scalar s) {
    s.real_ = -s.real_;
    s.integer_ = static_cast<int64_t>(uint64_t{0} - static_cast<uint64_t>(s.integer_));
    return s;
  }

 private:
  static constexpr int64_t truncate(double v) {
    return v > -9.2e18 && v < 9.2e18 ? static_cast<int64_t>(v) : 0;
  }
  double real_;
  int64_t integer_;
};

/// A type that converts to Scalar.
template <class N>
concept ScalarLike = std::convertible_to<N, Scalar> && !requires {
  typename N::value_type;
};

}  // namespace gable
