// SPDX-License-Identifier: Apache-2.0
// Operators of three operands: where, masked_fill, lerp.
#pragma once

#include "gable/ops/elementwise.hpp"

namespace gable {

// --- kernels' arguments: all views have out's shape, broadcast by stride 0

/// out = condition ? a : b.
template <class T>
struct WhereArgs {
  static constexpr const char* name = "where";
  TensorView<T> out;
  TensorView<const bool> condition;
  TensorView<const T> a;
  TensorView<const T> b;
  [[nodiscard]] Cost cost() const {
    return {.flops = out.numel(),
            .bytes_read = condition.bytes() + out.bytes(),
            .bytes_written = out.bytes()};
  }
};

namespace math {
/// a + weight (b - a), from b's side for weight >= 1/2, so that both ends are exact.
template <class V>
GABLE_HD inline V lerp(V a, V b, V weight) {
  const V d = b - a;
  const V low = a + weight * d;
  const V high = b - (V(1) - weight) * d;
  return weight < V(0.5) ? low : high;
}
}  // namespace math

/// out = math::lerp(a, b, weight).
template <class T>
struct LerpArgs {
  static constexpr const char* name = "lerp";
  TensorView<T> out;
  TensorView<const T> a;
  TensorView<const T> b;
  TensorView<const T> weight;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * out.numel(), .bytes_read = 3 * out.bytes(), .bytes_written = out.bytes()};
  }
};

/// Binary functor: lerp with one weight for all elements.
struct LerpScalar {
  static constexpr const char* name = "lerp";
  static constexpr bool saves = false;
  static constexpr int flops = 4;
  static constexpr int special = 0;
  Scalar weight = 0;
  template <class V>
  GABLE_HD V fwd(V a, V b) const {
    return math::lerp(a, b, weight.get<V>());
  }
  template <class V>
  GABLE_HD std::pair<V, V> bwd(V, V, V dy) const {
    const V w = weight.get<V>();
    return {dy * (V(1) - w), dy * w};
  }
};
template <class T>
using LerpScalarArgs = BinaryArgs<LerpScalar, T>;
template <class T>
using LerpScalarBackwardArgs = BinaryBackwardArgs<LerpScalar, T>;

namespace detail {

template <class T, class... Rest>
Shape broadcast_all(Where where, const Tensor<T>& first, const Rest&... rest) {
  check(first.defined() && (rest.defined() && ...), where,
        "expected defined tensors, got an undefined one");
  Shape shape = first.shape();
  ((shape = broadcast_shapes(shape, rest.shape(), where)), ...);
  common_device(where, first, rest...);
  return shape;
}

template <Element T>
void where_out(Where where, const Tensor<T>& out, const Tensor<bool>& condition, const Tensor<T>& a,
               const Tensor<T>& b) {
  const Shape shape = broadcast_all(where, condition, a, b);
  check_out(where, out, a, shape);
  const TensorView<T> target = out.write_view(where);
  const Tensor<bool> c(separate(condition.expand(shape), out));
  const Tensor<T> left(separate(a.expand(shape), out));
  const Tensor<T> right(separate(b.expand(shape), out));
  launch(out.device(), WhereArgs<T>{target, c.view(), left.view(), right.view()});
}

template <Element T>
Tensor<T> where_new(Where where, const Tensor<bool>& condition, const Tensor<T>& a,
                    const Tensor<T>& b) {
  const Shape shape = broadcast_all(where, condition, a, b);
  Tensor<T> out = broadcast_output<T>(a, b, shape);
  where_out(where, out, condition, a, b);
  return out;
}

template <FloatElement T>
void lerp_out(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b,
              const Tensor<T>& weight) {
  const Shape shape = broadcast_all("lerp", a, b, weight);
  check_out("lerp", out, a, shape);
  const TensorView<T> target = out.write_view("lerp");
  const Tensor<T> left(separate(a.expand(shape), out));
  const Tensor<T> right(separate(b.expand(shape), out));
  const Tensor<T> w(separate(weight.expand(shape), out));
  launch(out.device(), LerpArgs<T>{target, left.view(), right.view(), w.view()});
}

}  // namespace detail

// --- operators

template <Element T>
struct WhereOp : OpBase {
  static constexpr const char* name = "where";
  Saved<bool> condition;
  Shape shape_a;
  Shape shape_b;

  Tensor<T> forward(const Tensor<bool>& c, const Tensor<T>& a, const Tensor<T>& b) {
    Tensor<T> out = detail::where_new(name, c, a, b);
    shape_a = a.shape();
    shape_b = b.shape();
    if (recording()) condition.save(c);
    return out;
  }
  Grads<3> backward(const Tensor<T>& dy) requires FloatElement<T> {
    const Tensor<bool>& c = condition.get(name);
    const Tensor<T> zero = scalar(T{}, dy.device());
    Grads<3> out;
    if (needs(1)) out[1] = sum_to(detail::where_new(name, c, dy, zero), shape_a).any();
    if (needs(2)) out[2] = sum_to(detail::where_new(name, c, zero, dy), shape_b).any();
    return out;
  }
};

template <Element T>
struct MaskedFillOp : OpBase {
  static constexpr const char* name = "masked_fill";
  Scalar value;
  Saved<bool> mask;
  Shape shape_x;

  explicit MaskedFillOp(Scalar fill) : value(fill) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<bool>& m) {
    detail::broadcast_all(name, x, m);
    Tensor<T> out =
        detail::where_new(name, m, scalar(convert<T>(value.get<Compute<T>>()), x.device()), x);
    shape_x = x.shape();
    if (recording()) mask.save(m);
    return out;
  }
  Grads<2> backward(const Tensor<T>& dy) requires FloatElement<T> {
    const Tensor<T> zero = scalar(T{}, dy.device());
    return {sum_to(detail::where_new(name, mask.get(name), zero, dy), shape_x).any(), AnyTensor()};
  }
};

template <FloatElement T>
struct LerpOp : OpBase {
  static constexpr const char* name = "lerp";
  Saved<T> saved_a;
  Saved<T> saved_b;
  Saved<T> saved_weight;
  Shape shape_a;
  Shape shape_b;

  Tensor<T> forward(const Tensor<T>& a, const Tensor<T>& b, const Tensor<T>& weight) {
    const Shape shape = detail::broadcast_all(name, a, b, weight);
    Tensor<T> out = detail::broadcast_output<T>(a, b, shape);
    detail::lerp_out(out, a, b, weight);
    shape_a = a.shape();
    shape_b = b.shape();
    if (recording()) saved_weight.save(weight);
    if (needs(2)) {
      saved_a.save(a);
      saved_b.save(b);
    }
    return out;
  }
  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T>& w = saved_weight.get(name);
    Grads<3> out;
    if (needs(0)) out[0] = sum_to(mul(dy, rsub_scalar(w, 1)), shape_a).any();
    if (needs(1)) out[1] = sum_to(mul(dy, w), shape_b).any();
    if (needs(2))
      out[2] = sum_to(mul(dy, sub(saved_b.get(name), saved_a.get(name))), w.shape()).any();
    return out;
  }
};

// --- public functions

/// Elements of `a` where `condition` is true, else of `b`, all three broadcast. Any dtype. Not
/// chosen elements do not matter, NaN included. Throws ShapeError, DeviceError.
template <TensorLike A, TensorLike B>
requires std::same_as<element_of<A>, element_of<B>>
auto where(const Tensor<bool>& condition, const A& a, const B& b) {
  return apply(WhereOp<element_of<A>>{}, condition, a, b);
}
template <TensorLike A, ScalarLike S>
auto where(const Tensor<bool>& condition, const A& a, const S& b) {
  using T = element_of<A>;
  const T value = convert<T>(Scalar(b).get<Compute<T>>());
  return apply(WhereOp<T>{}, condition, a, scalar(value, condition.device()));
}
template <ScalarLike S, TensorLike B>
auto where(const Tensor<bool>& condition, const S& a, const B& b) {
  using T = element_of<B>;
  const T value = convert<T>(Scalar(a).get<Compute<T>>());
  return apply(WhereOp<T>{}, condition, scalar(value, condition.device()), b);
}
template <Element T>
const Tensor<T>& where_out(const Tensor<T>& out, const Tensor<bool>& condition, const Tensor<T>& a,
                           const Tensor<T>& b) {
  detail::where_out("where", out, condition, a, b);
  return out;
}

/// `x` with `value` where `mask` is true; x and mask are broadcast. Any dtype.
template <TensorLike X>
auto masked_fill(const X& x, const Tensor<bool>& mask, Scalar value) {
  return apply(MaskedFillOp<element_of<X>>{value}, x, mask);
}
template <Element T>
const Tensor<T>& masked_fill_out(const Tensor<T>& out, const Tensor<T>& x, const Tensor<bool>& mask,
                                 Scalar value) {
  check(x.defined() && mask.defined(), "masked_fill",
        "expected defined tensors, got an undefined one");
  detail::where_out("masked_fill", out, mask,
                    scalar(convert<T>(value.get<Compute<T>>()), x.device()), x);
  return out;
}
template <Element T>
const Tensor<T>& masked_fill_(const Tensor<T>& x, const Tensor<bool>& mask, Scalar value) {
  return masked_fill_out(x, x, mask, value);
}

/// a + weight (b - a), all three broadcast; exactly a for weight 0 and b for weight 1 (finite
/// operands). Floating point.
template <FloatTensorLike A, FloatTensorLike B, FloatTensorLike W>
requires(std::same_as<element_of<A>, element_of<B>>&&
             std::same_as<element_of<A>, element_of<W>>) auto lerp(const A& a, const B& b,
                                                                   const W& weight) {
  return apply(LerpOp<element_of<A>>{}, a, b, weight);
}
template <FloatTensorLike A, FloatTensorLike B>
requires std::same_as<element_of<A>, element_of<B>>
auto lerp(const A& a, const B& b, double weight) {
  return apply(BinaryOp<LerpScalar, element_of<A>>(LerpScalar{weight}), a, b);
}
template <FloatElement T>
const Tensor<T>& lerp_out(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b,
                          const Tensor<T>& weight) {
  detail::lerp_out(out, a, b, weight);
  return out;
}
template <FloatElement T>
const Tensor<T>& lerp_out(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b,
                          double weight) {
  detail::binary_out(LerpScalar{weight}, out, a, b);
  return out;
}

}  // namespace gable
