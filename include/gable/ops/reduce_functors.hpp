// SPDX-License-Identifier: Apache-2.0
// Reducers: what a reduction does with each value, and its derivative.
//
// A reducer has
//   State<T>                     what a partial result is; double for floats, int64 for integers
//   init<S>()                    the state of no values
//   step(S, V x, double shift)   one value more; `shift` belongs to the output (0 unless `shifted`)
//   combine(S, S)                two disjoint parts
//   finish<Out>(S, shift, n)     the result from n values
// and, unless linear or without gradient,
//   bwd(x, dy, y, aux, n)        the gradient of one input; y and aux are as ReduceOp makes them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gable/core/dtype.hpp"
#include "gable/ops/math.hpp"

namespace gable {

namespace detail {
/// Accumulators: double for floating point, int64 for integers and bool.
template <class T>
using WideState = std::conditional_t<FloatElement<T>, double, int64_t>;

using math::wrap_add;
using math::wrap_mul;
template <class V>
GABLE_HD constexpr V lowest() {
  if constexpr (std::numeric_limits<V>::has_infinity)
    return -std::numeric_limits<V>::infinity();
  else
    return std::numeric_limits<V>::lowest();
}
template <class V>
GABLE_HD constexpr V highest() {
  if constexpr (std::numeric_limits<V>::has_infinity)
    return std::numeric_limits<V>::infinity();
  else
    return std::numeric_limits<V>::max();
}
}  // namespace detail

/// Common to sums of something.
struct AddReducer {
  static constexpr bool shifted = false;
  static constexpr bool linear = false;
  static constexpr bool needs_values = false;  ///< no values: an error
  static constexpr int flops = 1;
  static constexpr int special = 0;
  template <class T>
  using State = detail::WideState<T>;
  template <class S>
  GABLE_HD static constexpr S init() {
    return S{};
  }
  template <class S>
  GABLE_HD static constexpr S combine(S a, S b) {
    return detail::wrap_add(a, b);
  }
  template <class Out, class S>
  GABLE_HD static constexpr Out finish(S s, double, int64_t) {
    return convert<Out>(s);
  }
};

struct Sum : AddReducer {
  static constexpr const char* name = "sum";
  static constexpr bool linear = true;
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return detail::wrap_add(s, static_cast<S>(x));
  }
  [[nodiscard]] static double scale(int64_t) { return 1; }
};

struct Mean : Sum {
  static constexpr const char* name = "mean";
  template <class Out, class S>
  GABLE_HD static constexpr Out finish(S s, double, int64_t n) {
    return convert<Out>(s / static_cast<double>(n));
  }
  [[nodiscard]] static double scale(int64_t n) { return 1 / static_cast<double>(n); }
};

struct Prod : AddReducer {
  static constexpr const char* name = "prod";
  template <class S>
  GABLE_HD static constexpr S init() {
    return S{1};
  }
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return detail::wrap_mul(s, static_cast<S>(x));
  }
  template <class S>
  GABLE_HD static constexpr S combine(S a, S b) {
    return detail::wrap_mul(a, b);
  }
  // y is the product of the values that are not 0, aux the number of zeros
  template <class V>
  GABLE_HD static constexpr V bwd(V x, V dy, V y, double aux, int64_t) {
    if (aux == 0) return dy * (y / x);
    return aux == 1 && x == V(0) ? dy * y : V(0);
  }
};

/// Product of the values that are not 0.
struct ProdNonZero : Prod {
  static constexpr const char* name = "prod_nonzero";
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return s * (x == V(0) ? S(1) : static_cast<S>(x));
  }
};

struct CountZero : AddReducer {
  static constexpr const char* name = "count_zero";
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return s + (x == V(0) ? S(1) : S(0));
  }
};

/// How many values equal the output's shift, NaN equal to NaN; with Absolute their magnitudes.
template <bool Absolute>
struct CountEqual : AddReducer {
  static constexpr const char* name = "count_equal";
  static constexpr bool shifted = true;
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double shift) {
    const V y = static_cast<V>(shift);
    const V v = Absolute && x < V(0) ? -x : x;
    return s + (v == y || (v != v && y != y) ? S(1) : S(0));
  }
};

/// Max or Min; NaN wins. Among equal extremes the gradient is split evenly.
template <bool IsMax, bool Absolute = false>
struct Extreme : AddReducer {
  static constexpr const char* name = Absolute ? "norm" : IsMax ? "max" : "min";
  static constexpr bool needs_values = !Absolute;
  template <class T>
  using State = Compute<T>;
  using Ties = CountEqual<Absolute>;
  template <class S>
  GABLE_HD static constexpr S init() {
    if constexpr (Absolute)
      return S{};
    else
      return IsMax ? detail::lowest<S>() : detail::highest<S>();
  }
  template <class S>
  GABLE_HD static constexpr S step(S s, S x, double) {
    if constexpr (Absolute) x = x < S(0) ? -x : x;
    return combine(s, x);
  }
  template <class S>
  GABLE_HD static constexpr S combine(S s, S x) {
    if constexpr (std::is_floating_point_v<S>) {
      const bool wins = IsMax ? x > s : x < s;
      return wins || x != x ? x : s;
    } else {
      return (IsMax ? x > s : x < s) ? x : s;
    }
  }
  // aux is the number of ties
  template <class V>
  GABLE_HD static constexpr V bwd(V x, V dy, V y, double aux, int64_t) {
    const V v = Absolute && x < V(0) ? -x : x;
    const bool hit = v == y || (v != v && y != y);
    V share = dy / static_cast<V>(aux);
    if (Absolute && x < V(0)) share = -share;
    if (Absolute && x == V(0)) share = V(0);
    return hit ? share : V(0);
  }
};
using Max = Extreme<true>;
using Min = Extreme<false>;
using NormInf = Extreme<true, true>;

struct Norm1 : AddReducer {
  static constexpr const char* name = "norm";
  static constexpr int flops = 2;
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return s + static_cast<S>(x < V(0) ? -x : x);
  }
  template <class V>
  GABLE_HD static constexpr V bwd(V x, V dy, V, double, int64_t) {
    return x > V(0) ? dy : x < V(0) ? -dy : x * V(0);
  }
};

struct Norm2 : AddReducer {
  static constexpr const char* name = "norm";
  static constexpr int flops = 2;
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    return s + static_cast<S>(x) * static_cast<S>(x);
  }
  template <class Out, class S>
  GABLE_HD static Out finish(S s, double, int64_t) {
    return convert<Out>(math::sqrt(s));
  }
  template <class V>
  GABLE_HD static constexpr V bwd(V x, V dy, V y, double, int64_t) {
    return y == V(0) ? V(0) : dy * (x / y);
  }
};

/// Second pass of the variance; the shift is the mean.
template <bool Root>
struct Variance : AddReducer {
  static constexpr const char* name = Root ? "std" : "var";
  static constexpr bool shifted = true;
  static constexpr int flops = 3;
  double correction = 1;
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double shift) {
    const double d = static_cast<double>(x) - shift;
    return s + d * d;
  }
  [[nodiscard]] GABLE_HD double divisor(int64_t n) const {
    const double d = static_cast<double>(n) - correction;
    return d > 0 ? d : 0;
  }
  template <class Out, class S>
  GABLE_HD Out finish(S s, double, int64_t n) const {
    const double v = s / divisor(n);
    return convert<Out>(Root ? math::sqrt(v) : v);
  }
  // aux is the mean
  template <class V>
  GABLE_HD V bwd(V x, V dy, V y, double aux, int64_t n) const {
    const V d = static_cast<V>((static_cast<double>(x) - aux) / divisor(n));
    if constexpr (Root)
      return d == V(0) ? V(0) : dy * d / y;
    else
      return V(2) * dy * d;
  }
};

/// The shift of LogSumExp: the maximum, or 0 where that is not finite.
struct FiniteMax : Max {
  static constexpr const char* name = "logsumexp_max";
  static constexpr bool needs_values = false;
  template <class Out, class S>
  GABLE_HD static constexpr Out finish(S s, double, int64_t) {
    return convert<Out>(s - s == S(0) ? s : S(0));
  }
};

/// Second pass of log(sum(exp(x))).
struct LogSumExp : AddReducer {
  static constexpr const char* name = "logsumexp";
  static constexpr bool shifted = true;
  static constexpr int flops = 2;
  static constexpr int special = 1;
  template <class S, class V>
  GABLE_HD static S step(S s, V x, double shift) {
    return s + static_cast<S>(math::exp(x - static_cast<V>(shift)));
  }
  template <class Out, class S>
  GABLE_HD static Out finish(S s, double shift, int64_t) {
    return convert<Out>(math::log(s) + shift);
  }
  template <class V>
  GABLE_HD static V bwd(V x, V dy, V y, double, int64_t) {
    return x == detail::lowest<V>() ? V(0) : dy * math::exp(x - y);
  }
};

/// All or Any.
template <bool IsAll>
struct Logical : AddReducer {
  static constexpr const char* name = IsAll ? "all" : "any";
  template <class T>
  using State = uint8_t;
  template <class S>
  GABLE_HD static constexpr S init() {
    return IsAll ? 1 : 0;
  }
  template <class S, class V>
  GABLE_HD static constexpr S step(S s, V x, double) {
    const auto v = static_cast<S>(x != V{});
    return static_cast<S>(IsAll ? s & v : s | v);
  }
  template <class S>
  GABLE_HD static constexpr S combine(S a, S b) {
    return static_cast<S>(IsAll ? a & b : a | b);
  }
};
using All = Logical<true>;
using Any = Logical<false>;

}  // namespace gable
