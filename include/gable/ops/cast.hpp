// SPDX-License-Identifier: Apache-2.0
// Conversion of the element type, with a gradient that is converted back.
#pragma once

#include "gable/ops/op.hpp"

namespace gable {

template <Element U, Element T>
struct CastOp : OpBase {
  static constexpr const char* name = "cast";
  /// dy comes in the wider type: float gradients of 16-bit products are not rounded on their way.
  using Gradient = std::conditional_t<(sizeof(T) > sizeof(U)), T, U>;
  Tensor<U> forward(const Tensor<T>& x) { return x.template to<U>(); }
  Grads<1> backward(const Tensor<Gradient>& dy) requires FloatElement<T> {
    return {dy.template to<T>().any()};
  }
};

/// `x` with elements of type U; x itself if it has them already. Floating point to integer
/// truncates, NaN becomes 0, out of range saturates; anything but zero becomes true. A Variable
/// casts between floating-point types only.
template <Element U, TensorLike X>
auto cast(const X& x) {
  if constexpr (std::same_as<U, element_of<X>>)
    return X(x);
  else
    return apply(CastOp<U, element_of<X>>{}, x);
}
/// Converts `x` into `out`; equal shapes.
template <Element U, Element T>
const Tensor<U>& cast_out(const Tensor<U>& out, const Tensor<T>& x) {
  check(x.defined() && out.defined() && out.shape() == x.shape(), "cast",
        "expected an output of shape ", x.shape(), ", got ", out.shape());
  out.any().copy_(x, "cast");
  return out;
}

}  // namespace gable
