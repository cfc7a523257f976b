// SPDX-License-Identifier: Apache-2.0
// One struct a unary elementwise operator. V is the compute type (float for 16-bit tensors).
//
// A unary functor has fwd(x) and, if floating point, bwd(s, dy) where s is what `save` names:
// the input, the output, or nothing (s is then 0). `flops` and `special` count one element's
// forward work.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "gable/core/scalar.hpp"
#include "gable/ops/math.hpp"

namespace gable {

/// What a unary operator's gradient reads.
enum class Save : uint8_t { nothing, input, output };

#define GABLE_FUNCTOR(text, saved, flop_count, special_count) \
  static constexpr const char* name = text;                   \
  static constexpr Save save = Save::saved;                   \
  static constexpr int flops = flop_count;                    \
  static constexpr int special = special_count;

struct Neg {
  GABLE_FUNCTOR("neg", nothing, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    if constexpr (std::is_integral_v<V>) return math::wrap_sub(V(0), x);
    return static_cast<V>(-x);
  }
  template <class V>
  GABLE_HD V bwd(V, V dy) const {
    return -dy;
  }
};
struct Abs {
  GABLE_FUNCTOR("abs", input, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    if constexpr (std::is_floating_point_v<V>) return math::abs(x);
    return x < V(0) ? math::wrap_sub(V(0), x) : x;
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return math::select(x > V(0), dy, math::select(x < V(0), -dy, x * V(0)));
  }
};
struct Square {
  GABLE_FUNCTOR("square", input, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::wrap_mul(x, x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return V(2) * x * dy;
  }
};
struct Sign {  // NaN stays NaN
  GABLE_FUNCTOR("sign", nothing, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return x > V(0) ? V(1) : (x == V(0) ? V(0) : (x < V(0) ? V(-1) : x));
  }
  template <class V>
  GABLE_HD V bwd(V, V) const {
    return V(0);
  }
};
struct Relu {  // NaN stays NaN
  GABLE_FUNCTOR("relu", output, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return x < V(0) ? V(0) : x;
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return y > V(0) ? dy : V(0);
  }
};
/// clamp(x, low, high): NaN stays NaN; the gradient is 1 on the closed interval.
struct Clamp {
  GABLE_FUNCTOR("clamp", input, 2, 0)
  Scalar low = 0;
  Scalar high = 1;
  template <class V>
  GABLE_HD V fwd(V x) const {
    const V lo = low.get<V>();
    const V hi = high.get<V>();
    const V raised = x < lo ? lo : x;
    return raised > hi ? hi : raised;
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return x >= low.get<V>() && x <= high.get<V>() ? dy : V(0);
  }
};
struct AddScalar {
  GABLE_FUNCTOR("add_scalar", nothing, 1, 0)
  Scalar c = 0;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::wrap_add(x, c.get<V>());
  }
  template <class V>
  GABLE_HD V bwd(V, V dy) const {
    return dy;
  }
};
/// c - x.
struct RsubScalar {
  GABLE_FUNCTOR("rsub_scalar", nothing, 1, 0)
  Scalar c = 0;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::wrap_sub(c.get<V>(), x);
  }
  template <class V>
  GABLE_HD V bwd(V, V dy) const {
    return -dy;
  }
};
struct MulScalar {
  GABLE_FUNCTOR("mul_scalar", nothing, 1, 0)
  Scalar c = 1;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::wrap_mul(x, c.get<V>());
  }
  template <class V>
  GABLE_HD V bwd(V, V dy) const {
    return dy * c.get<V>();
  }
};
struct DivScalar {
  GABLE_FUNCTOR("div_scalar", nothing, 1, 0)
  Scalar c = 1;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return x / c.get<V>();
  }
  template <class V>
  GABLE_HD V bwd(V, V dy) const {
    return dy / c.get<V>();
  }
};
/// c / x.
struct RdivScalar {
  GABLE_FUNCTOR("rdiv_scalar", input, 1, 0)
  Scalar c = 1;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return c.get<V>() / x;
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return -dy * c.get<V>() / (x * x);
  }
};
/// x to the power of a constant. 2 and 3, the same for a whole loop, need no pow.
struct PowScalar {
  GABLE_FUNCTOR("pow_scalar", input, 0, 1)
  Scalar c = 1;
  template <class V>
  GABLE_HD V fwd(V x) const {
    const V p = c.get<V>();
    if (p == V(2)) return x * x;
    if (p == V(3)) return x * x * x;
    return math::pow(x, p);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    const V p = c.get<V>();
    if (p == V(2)) return V(2) * x * dy;
    if (p == V(3)) return V(3) * (x * x) * dy;
    return p == V(0) ? V(0) : dy * p * math::pow(x, p - V(1));
  }
};
struct Exp {
  GABLE_FUNCTOR("exp", output, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::exp(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return dy * y;
  }
};
struct Log {
  GABLE_FUNCTOR("log", input, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::log(x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return dy / x;
  }
};
struct Log1p {
  GABLE_FUNCTOR("log1p", input, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::log1p(x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return dy / (V(1) + x);
  }
};
struct Expm1 {
  GABLE_FUNCTOR("expm1", output, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::expm1(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return dy * (y + V(1));
  }
};
struct Sqrt {
  GABLE_FUNCTOR("sqrt", output, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::sqrt(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return dy / (V(2) * y);
  }
};
struct Rsqrt {
  GABLE_FUNCTOR("rsqrt", output, 1, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return V(1) / math::sqrt(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return V(-0.5) * dy * y * y * y;
  }
};
struct Tanh {
  GABLE_FUNCTOR("tanh", output, 0, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::tanh(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return dy * (V(1) - y * y);
  }
};
struct Sigmoid {
  GABLE_FUNCTOR("sigmoid", output, 3, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::sigmoid(x);
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return dy * y * (V(1) - y);
  }
};
/// x for x >= 0, slope * x below.
struct LeakyRelu {
  GABLE_FUNCTOR("leaky_relu", input, 2, 0)
  Scalar slope = 0.01;
  template <class V>
  GABLE_HD V fwd(V x) const {
    return x < V(0) ? x * slope.get<V>() : x;
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return x > V(0) ? dy : dy * slope.get<V>();
  }
};
/// x * Phi(x), by erf.
struct Gelu {
  GABLE_FUNCTOR("gelu", input, 4, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return V(0.5) * x * (V(1) + math::erf(x * V(0.70710678118654752)));
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    const V cdf = V(0.5) * (V(1) + math::erf(x * V(0.70710678118654752)));
    const V pdf = V(0.39894228040143268) * math::exp(V(-0.5) * x * x);
    return dy * (cdf + x * pdf);
  }
};
/// The tanh approximation of GELU (Hendrycks and Gimpel, arXiv 1606.08415).
struct GeluTanh {
  GABLE_FUNCTOR("gelu_tanh", input, 8, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    const V u = V(0.79788456080286536) * (x + V(0.044715) * x * x * x);
    return V(0.5) * x * (V(1) + math::tanh(u));
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    const V t = math::tanh(V(0.79788456080286536) * (x + V(0.044715) * x * x * x));
    const V du = V(0.79788456080286536) * (V(1) + V(0.134145) * x * x);
    return dy * (V(0.5) * (V(1) + t) + V(0.5) * x * (V(1) - t * t) * du);
  }
};
/// x * sigmoid(x).
struct Silu {
  GABLE_FUNCTOR("silu", input, 4, 1)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return x * math::sigmoid(x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    const V s = math::sigmoid(x);
    return dy * s * (V(1) + x * (V(1) - s));
  }
};
/// log(1 + exp(x)) without overflow.
struct Softplus {
  GABLE_FUNCTOR("softplus", input, 3, 2)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return (x < V(0) ? V(0) : x) + math::log1p_unit(math::exp(-math::abs(x)));
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return dy * math::sigmoid(x);
  }
};
struct Reciprocal {
  GABLE_FUNCTOR("reciprocal", output, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return V(1) / x;
  }
  template <class V>
  GABLE_HD V bwd(V y, V dy) const {
    return -dy * y * y;
  }
};
/// fwd and bwd take any x; CPU loops use fast_fwd and fast_bwd where a whole tile of float inputs
/// is in range.
struct Sin {
  GABLE_FUNCTOR("sin", input, 0, 1)
  static bool in_fast_range(float x) { return math::abs(x) <= math::kSinCosLimit; }
  float fast_fwd(float x) const { return math::fast_sin(x); }
  float fast_bwd(float x, float dy) const { return dy * math::fast_cos(x); }
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::sin(x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return dy * math::cos(x);
  }
};
struct Cos {
  GABLE_FUNCTOR("cos", input, 0, 1)
  static bool in_fast_range(float x) { return math::abs(x) <= math::kSinCosLimit; }
  float fast_fwd(float x) const { return math::fast_cos(x); }
  float fast_bwd(float x, float dy) const { return -dy * math::fast_sin(x); }
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::cos(x);
  }
  template <class V>
  GABLE_HD V bwd(V x, V dy) const {
    return -dy * math::sin(x);
  }
};
struct Floor {
  GABLE_FUNCTOR("floor", nothing, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::floor(x);
  }
  template <class V>
  GABLE_HD V bwd(V, V) const {
    return V(0);
  }
};
struct Ceil {
  GABLE_FUNCTOR("ceil", nothing, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::ceil(x);
  }
  template <class V>
  GABLE_HD V bwd(V, V) const {
    return V(0);
  }
};
/// To the nearest integer, halves to even (as NumPy and PyTorch).
struct Round {
  GABLE_FUNCTOR("round", nothing, 1, 0)
  template <class V>
  GABLE_HD V fwd(V x) const {
    return math::rint(x);
  }
  template <class V>
  GABLE_HD V bwd(V, V) const {
    return V(0);
  }
};

// --- predicates: T -> bool

struct IsNan {
  GABLE_FUNCTOR("isnan", nothing, 1, 0)
  template <class V>
  GABLE_HD bool fwd(V x) const {
    return math::is_nan(x);
  }
};
struct IsInf {
  GABLE_FUNCTOR("isinf", nothing, 1, 0)
  template <class V>
  GABLE_HD bool fwd(V x) const {
    return math::abs(x) == std::numeric_limits<V>::infinity();
  }
};
struct IsFinite {
  GABLE_FUNCTOR("isfinite", nothing, 1, 0)
  template <class V>
  GABLE_HD bool fwd(V x) const {
    return !math::is_nan(x - x);
  }
};
struct LogicalNot {
  GABLE_FUNCTOR("logical_not", nothing, 1, 0)
  template <class V>
  GABLE_HD bool fwd(V x) const {
    return x == V(0);
  }
};

#undef GABLE_FUNCTOR

}  // namespace gable
