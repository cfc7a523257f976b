// SPDX-License-Identifier: Apache-2.0
// Scalar mathematics for elementwise functors: one spelling for CPU and CUDA, float and double.
#pragma once

#include <cmath>
#include <type_traits>

#include "gable/core/config.hpp"

namespace gable::math {

template <class V>
GABLE_HD inline V select(bool condition, V yes, V no) {
  return condition ? yes : no;
}
template <class V>
GABLE_HD inline bool is_nan(V x) {
  return x != x;
}

using std::abs;
using std::atan2;
using std::ceil;
using std::cos;
using std::erf;
using std::exp;
using std::expm1;
using std::floor;
using std::log;
using std::log1p;
using std::pow;
using std::rint;
using std::sin;
using std::sqrt;
using std::tanh;

/// 1 / (1 + exp(-x)) without overflow.
template <class V>
GABLE_HD inline V sigmoid(V x) {
  const V e = exp(-abs(x));
  const V s = V(1) / (V(1) + e);
  return select(x < V(0), e * s, s);
}

}  // namespace gable::math
