// SPDX-License-Identifier: Apache-2.0
// One struct a binary elementwise operator or comparison. V is the compute type.
#pragma once

#include <utility>

#include "gable/ops/math.hpp"

namespace gable {

// --- binary: (T, T) -> T. bwd gives the gradients of both inputs; `saves` is false where it
// reads neither.

#define GABLE_BINARY_FUNCTOR(text, reads_inputs, flop_count, special_count) \
  static constexpr const char* name = text;                                 \
  static constexpr bool saves = reads_inputs;                               \
  static constexpr int flops = flop_count;                                  \
  static constexpr int special = special_count;

template <class V>
using Pair = std::pair<V, V>;

struct Add {
  GABLE_BINARY_FUNCTOR("add", false, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::wrap_add(a, b);
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V, V, V dy) const {
    return {dy, dy};
  }
};
struct Sub {
  GABLE_BINARY_FUNCTOR("sub", false, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::wrap_sub(a, b);
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V, V, V dy) const {
    return {dy, -dy};
  }
};
struct Mul {
  GABLE_BINARY_FUNCTOR("mul", true, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::wrap_mul(a, b);
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    return {dy * b, dy * a};
  }
};
struct Div {
  GABLE_BINARY_FUNCTOR("div", true, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return a / b;
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    return {dy / b, -dy * a / (b * b)};
  }
};
struct Pow {
  GABLE_BINARY_FUNCTOR("pow", true, 0, 1)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::pow(a, b);
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    const V da = b == V(0) ? V(0) : dy * b * math::pow(a, b - V(1));
    const V db = a == V(0) && b >= V(0) ? V(0) : dy * math::pow(a, b) * math::log(a);
    return {da, db};
  }
};
struct Atan2 {
  GABLE_BINARY_FUNCTOR("atan2", true, 0, 1)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::atan2(a, b);
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    const V r = dy / (a * a + b * b);
    return {b * r, -a * r};
  }
};
/// NaN where either is NaN; equal inputs share the gradient in halves, as PyTorch.
struct Maximum {
  GABLE_BINARY_FUNCTOR("maximum", true, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return a > b || math::is_nan(a) ? a : b;
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    const V to_a = a > b ? dy : (a == b ? dy * V(0.5) : V(0));
    return {to_a, dy - to_a};
  }
};
struct Minimum {
  GABLE_BINARY_FUNCTOR("minimum", true, 1, 0)
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return a < b || math::is_nan(a) ? a : b;
  }
  template <class V>
  GABLE_HD Pair<V> bwd(V a, V b, V dy) const {
    const V to_a = a < b ? dy : (a == b ? dy * V(0.5) : V(0));
    return {to_a, dy - to_a};
  }
};

// --- comparisons and logic: (T, T) -> bool

#define GABLE_COMPARE_FUNCTOR(Type, text, expression) \
  struct Type {                                       \
    GABLE_BINARY_FUNCTOR(text, false, 1, 0)           \
    template <class V>                                \
    GABLE_HD bool fwd(V a, V b) const {               \
      return expression;                              \
    }                                                 \
  };
GABLE_COMPARE_FUNCTOR(Eq, "eq", a == b)
GABLE_COMPARE_FUNCTOR(Ne, "ne", a != b)
GABLE_COMPARE_FUNCTOR(Lt, "lt", a < b)
GABLE_COMPARE_FUNCTOR(Le, "le", a <= b)
GABLE_COMPARE_FUNCTOR(Gt, "gt", a > b)
GABLE_COMPARE_FUNCTOR(Ge, "ge", a >= b)
GABLE_COMPARE_FUNCTOR(LogicalAnd, "logical_and", a != V(0) && b != V(0))
GABLE_COMPARE_FUNCTOR(LogicalOr, "logical_or", a != V(0) || b != V(0))
GABLE_COMPARE_FUNCTOR(LogicalXor, "logical_xor", (a != V(0)) != (b != V(0)))
#undef GABLE_COMPARE_FUNCTOR
#undef GABLE_BINARY_FUNCTOR

}  // namespace gable
