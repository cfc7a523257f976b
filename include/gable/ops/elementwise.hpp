// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with NumPy broadcasting: functions, out and in-place forms, gradients.
// All of them come from elementwise_list.hpp; the functors are in
// elementwise_functors.hpp and elementwise_binary_functors.hpp.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "gable/ops/elementwise_binary_functors.hpp"
#include "gable/ops/elementwise_functors.hpp"
#include "gable/ops/elementwise_list.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/sum_to.hpp"

namespace gable {

// --- kernels' arguments

/// out = f(in); equal shapes, any strides.
template <class F, class T, class Out = T>
struct UnaryArgs {
  static constexpr const char* name = F::name;
  TensorView<Out> out;
  TensorView<const T> in;
  F f;
  [[nodiscard]] Cost cost() const {
    const int64_t n = out.numel();
    return {.flops = F::flops * n,
            .special = F::special * n,
            .bytes_read = in.bytes(),
            .bytes_written = out.bytes()};
  }
};

/// dx = f.bwd(saved, dy); `saved` has no data where f saves nothing.
template <class F, class T>
struct UnaryBackwardArgs {
  static constexpr const char* name = F::name;
  TensorView<T> dx;
  TensorView<const T> dy;
  TensorView<const T> saved;
  F f;
  [[nodiscard]] Cost cost() const {
    const int64_t n = dx.numel();
    return {.flops = (F::flops + 1) * n,
            .special = F::special * n,
            .bytes_read = dy.bytes() + (saved.data != nullptr ? saved.bytes() : 0),
            .bytes_written = dx.bytes()};
  }
};

/// out = f(a, b); a and b are already broadcast to out's shape (stride 0).
template <class F, class T, class Out = T>
struct BinaryArgs {
  static constexpr const char* name = F::name;
  TensorView<Out> out;
  TensorView<const T> a;
  TensorView<const T> b;
  F f;
  [[nodiscard]] Cost cost() const {
    const int64_t n = out.numel();
    return {.flops = F::flops * n,
            .special = F::special * n,
            .bytes_read = 2 * n * static_cast<int64_t>(sizeof(T)),
            .bytes_written = out.bytes()};
  }
};

/// (da, db) = f.bwd(a, b, dy), all of dy's shape; da or db without data are not wanted.
template <class F, class T>
struct BinaryBackwardArgs {
  static constexpr const char* name = F::name;
  TensorView<T> da;
  TensorView<T> db;
  TensorView<const T> dy;
  TensorView<const T> a;
  TensorView<const T> b;
  F f;
  [[nodiscard]] Cost cost() const {
    const int64_t n = dy.numel();
    const int outputs = (da.data != nullptr ? 1 : 0) + (db.data != nullptr ? 1 : 0);
    return {.flops = outputs * (F::flops + 1) * n,
            .special = F::special * n,
            .bytes_read = (F::saves ? 3 : 1) * dy.bytes(),
            .bytes_written = outputs * dy.bytes()};
  }
};

// --- operators

namespace detail {

template <class T, class Out>
void check_out(Where where, const Tensor<Out>& out, const Tensor<T>& input, const Shape& shape) {
  check(out.defined() && out.shape() == shape, where, "expected an output of shape ", shape,
        ", got ", out.shape());
  check_same_device(where, out, input);
}

/// Writes f(x) into `out`; partial overlap of the two behaves as if x were cloned first.
template <class F, class T, class Out>
void unary_out(const F& f, const Tensor<Out>& out, const Tensor<T>& x) {
  check(x.defined(), F::name, "expected a defined tensor, got an undefined one");
  check_out(F::name, out, x, x.shape());
  const TensorView<Out> target = out.write_view(F::name);
  const Tensor<T> source(separate(x, out));
  launch(x.device(), UnaryArgs<F, T, Out>{target, source.view(), f});
}

template <class F, class T, class Out>
void binary_out(const F& f, const Tensor<Out>& out, const Tensor<T>& a, const Tensor<T>& b) {
  check(a.defined() && b.defined(), F::name, "expected defined tensors, got an undefined one");
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), F::name);
  check_same_device(F::name, a, b);
  check_out(F::name, out, a, shape);
  const TensorView<Out> target = out.write_view(F::name);
  const Tensor<T> left(separate(a.expand(shape), out));
  const Tensor<T> right(separate(b.expand(shape), out));
  launch(a.device(), BinaryArgs<F, T, Out>{target, left.view(), right.view(), f});
}

/// Fresh output of a binary operator: laid out like the operand that has the result's shape.
template <class Out, class T>
Tensor<Out> broadcast_output(const Tensor<T>& a, const Tensor<T>& b, const Shape& shape) {
  const bool like_a = a.shape() == shape;
  const bool like_b = b.shape() == shape;
  const Layout layout = like_a ? a.layout().like() : like_b ? b.layout().like() : Layout(shape);
  return Tensor<Out>(AnyTensor::empty(layout, dtype_of<Out>, a.device()));
}

}  // namespace detail

template <class F, Element T, Element Out = T>
struct UnaryOp : OpBase {
  static constexpr const char* name = F::name;
  F f;
  Saved<T> saved;

  explicit UnaryOp(F functor) : f(functor) {}

  Tensor<Out> forward(const Tensor<T>& x) {
    Tensor<Out> y(AnyTensor::empty(x.layout().like(), dtype_of<Out>, x.device()));
    detail::unary_out(f, y, x);
    if constexpr (std::is_same_v<T, Out>) {
      if (recording() && F::save == Save::input) saved.save(x);
      if (recording() && F::save == Save::output) saved.save(y);
    }
    return y;
  }

  Grads<1> backward(const Tensor<T>& dy) requires FloatElement<T> {
    Tensor<T> dx = empty_like(dy);
    TensorView<const T> s;
    if constexpr (F::save != Save::nothing) s = saved.get(name).view();
    launch(dy.device(), UnaryBackwardArgs<F, T>{dx.write_view(name), dy.view(), s, f});
    return {dx};
  }
};

template <class F, Element T, Element Out = T>
struct BinaryOp : OpBase {
  static constexpr const char* name = F::name;
  F f;
  Saved<T> saved_a;
  Saved<T> saved_b;
  Shape shape_a;
  Shape shape_b;

  explicit BinaryOp(F functor) : f(functor) {}

  Tensor<Out> forward(const Tensor<T>& a, const Tensor<T>& b) {
    const Shape shape = broadcast_shapes(a.shape(), b.shape(), name);
    detail::check_same_device(name, a, b);
    Tensor<Out> y = detail::broadcast_output<Out>(a, b, shape);
    detail::binary_out(f, y, a, b);
    shape_a = a.shape();
    shape_b = b.shape();
    if (recording() && F::saves) {
      saved_a.save(a);
      saved_b.save(b);
    }
    return y;
  }

  Grads<2> backward(const Tensor<T>& dy) requires FloatElement<T> {
    // Add and Sub read no inputs and need no kernel where the gradient is dy itself.
    if constexpr (std::is_same_v<F, Add>) {
      return {needs(0) ? sum_to(dy, shape_a).any() : AnyTensor(),
              needs(1) ? sum_to(dy, shape_b).any() : AnyTensor()};
    }
    Tensor<T> da;
    Tensor<T> db;
    BinaryBackwardArgs<F, T> args{{}, {}, dy.view(), dy.view(), dy.view(), f};
    if constexpr (F::saves) {
      args.a = saved_a.get(name).expand(dy.shape()).view();
      args.b = saved_b.get(name).expand(dy.shape()).view();
    }
    if (needs(0)) args.da = (da = empty_like(dy)).write_view(name);
    if (needs(1)) args.db = (db = empty_like(dy)).write_view(name);
    launch(dy.device(), args);
    return {needs(0) ? sum_to(da, shape_a).any() : AnyTensor(),
            needs(1) ? sum_to(db, shape_b).any() : AnyTensor()};
  }
};

// --- public functions

// f(x, parameters...), f_out(out, x, parameters...), f_(x, parameters...) in place.
#define GABLE_DEFINE_UNARY(function, F)                                      \
  template <TensorLike X, ScalarLike... P>                                   \
  auto function(const X& x, const P&... parameters) {                        \
    return apply(UnaryOp<F, element_of<X>>(F{parameters...}), x);            \
  }                                                                          \
  template <Element T, ScalarLike... P>                                      \
  const Tensor<T>& function##_out(const Tensor<T>& out, const Tensor<T>& x,  \
                                  const P&... parameters) {                  \
    detail::unary_out(F{parameters...}, out, x);                             \
    return out;                                                              \
  }                                                                          \
  template <Element T, ScalarLike... P>                                      \
  const Tensor<T>& function##_(const Tensor<T>& x, const P&... parameters) { \
    return function##_out(x, x, parameters...);                              \
  }
#define GABLE_DEFINE_PREDICATE(function, F)                                         \
  template <Element T>                                                              \
  Tensor<bool> function(const Tensor<T>& x) {                                       \
    return apply(UnaryOp<F, T, bool>(F{}), x);                                      \
  }                                                                                 \
  template <Element T>                                                              \
  const Tensor<bool>& function##_out(const Tensor<bool>& out, const Tensor<T>& x) { \
    detail::unary_out(F{}, out, x);                                                 \
    return out;                                                                     \
  }
#define GABLE_DEFINE_BINARY(function, F)                                                          \
  template <TensorLike A, TensorLike B>                                                           \
  requires std::same_as<element_of<A>, element_of<B>>                                             \
  auto function(const A& a, const B& b) { return apply(BinaryOp<F, element_of<A>>(F{}), a, b); }  \
  template <Element T>                                                                            \
  const Tensor<T>& function##_out(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b) { \
    detail::binary_out(F{}, out, a, b);                                                           \
    return out;                                                                                   \
  }                                                                                               \
  template <Element T>                                                                            \
  const Tensor<T>& function##_(const Tensor<T>& a, const Tensor<T>& b) {                          \
    return function##_out(a, a, b);                                                               \
  }
#define GABLE_DEFINE_COMPARE(function, F)                                         \
  template <Element T>                                                            \
  Tensor<bool> function(const Tensor<T>& a, const Tensor<T>& b) {                 \
    return apply(BinaryOp<F, T, bool>(F{}), a, b);                                \
  }                                                                               \
  template <Element T>                                                            \
  const Tensor<bool>& function##_out(const Tensor<bool>& out, const Tensor<T>& a, \
                                     const Tensor<T>& b) {                        \
    detail::binary_out(F{}, out, a, b);                                           \
    return out;                                                                   \
  }                                                                               \
  template <Element T>                                                            \
  Tensor<bool> function(const Tensor<T>& a, std::type_identity_t<T> b) {          \
    return function(a, scalar<T>(b, a.device()));                                 \
  }
GABLE_UNARY_FLOAT_OPS(GABLE_DEFINE_UNARY)
GABLE_UNARY_NUMERIC_OPS(GABLE_DEFINE_UNARY)
GABLE_PREDICATE_FLOAT_OPS(GABLE_DEFINE_PREDICATE)
GABLE_PREDICATE_ALL_OPS(GABLE_DEFINE_PREDICATE)
GABLE_BINARY_FLOAT_OPS(GABLE_DEFINE_BINARY)
GABLE_BINARY_NUMERIC_OPS(GABLE_DEFINE_BINARY)
GABLE_COMPARE_OPS(GABLE_DEFINE_COMPARE)
#undef GABLE_DEFINE_UNARY
#undef GABLE_DEFINE_PREDICATE
#undef GABLE_DEFINE_BINARY
#undef GABLE_DEFINE_COMPARE

template <TensorLike X>
auto operator-(const X& x) {
  return neg(x);
}
template <TensorLike A, TensorLike B>
auto operator+(const A& a, const B& b) {
  return add(a, b);
}
template <TensorLike A, TensorLike B>
auto operator-(const A& a, const B& b) {
  return sub(a, b);
}
template <TensorLike A, TensorLike B>
auto operator*(const A& a, const B& b) {
  return mul(a, b);
}
template <TensorLike A, TensorLike B>
auto operator/(const A& a, const B& b) {
  return div(a, b);
}
template <TensorLike X, ScalarLike S>
auto operator+(const X& x, S c) {
  return add_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator+(S c, const X& x) {
  return add_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator-(const X& x, S c) {
  return add_scalar(x, -Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator-(S c, const X& x) {
  return rsub_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator*(const X& x, S c) {
  return mul_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator*(S c, const X& x) {
  return mul_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator/(const X& x, S c) {
  return div_scalar(x, Scalar(c));
}
template <TensorLike X, ScalarLike S>
auto operator/(S c, const X& x) {
  return rdiv_scalar(x, Scalar(c));
}

}  // namespace gable
