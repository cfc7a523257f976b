// SPDX-License-Identifier: Apache-2.0
// Matrix products: matmul (vectors, matrices, broadcast batches) and linear, with gradients.
#pragma once

#include <cstdint>

#include "gable/ops/autocast.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/sum_to.hpp"

namespace gable {

/// out = a b (+ bias): out (batch..., m, n), a (batch..., m, k), b (batch..., k, n), all of one
/// rank >= 2; broadcast batches have stride 0. Any strides. bias (n) may have no data.
/// 16-bit types and sums into a wider Out accumulate in float.
template <class T, class Out = T>
struct MatmulArgs {
  static constexpr const char* name = "matmul";
  TensorView<Out> out;
  TensorView<const T> a;
  TensorView<const T> b;
  TensorView<const T> bias;
  /// Broadcast operands are read once.
  [[nodiscard]] Cost cost() const {
    const int64_t k = a.size(a.rank() - 1);
    const auto bytes = [](const TensorView<const T>& x) {
      int64_t n = static_cast<int64_t>(sizeof(T));
      for (int d = 0; d < x.rank(); ++d)
        if (x.stride(d) != 0) n *= x.size(d);
      return x.numel() == 0 ? 0 : n;
    };
    const bool biased = bias.data != nullptr;
    return {.flops = biased ? out.numel() : 0,
            .matrix_flops = 2 * out.numel() * k,
            .bytes_read = bytes(a) + bytes(b) + (biased ? bias.bytes() : 0),
            .bytes_written = out.bytes()};
  }
};

namespace detail {

/// Operands of a product as matrices with equal batch dimensions, and the result's shape.
struct MatmulPlan {
  Layout a;
  Layout b;
  Shape shape;
};
/// Throws ShapeError, with both shapes, for rank 0, inner sizes or batches that do not fit.
[[nodiscard]] MatmulPlan plan_matmul(const Layout& a, const Layout& b, Where where);
/// A product's layout with a 1 where a vector operand lacks its dimension.
[[nodiscard]] Layout matmul_full_layout(const Layout& result, int rank_a, int rank_b);
/// Rows of the last dimension as one matrix: a view where strides allow it, else a counted copy.
[[nodiscard]] AnyTensor as_rows(const AnyTensor& x);
void check_linear(const AnyTensor& x, const AnyTensor& weight, const AnyTensor* bias);

/// out = a b (+ bias) for operands of equal rank; `out` must not share memory with them.
template <class T, class Out>
void launch_matmul(const Tensor<Out>& out, const Tensor<T>& a, const Tensor<T>& b,
                   const Tensor<T>& bias = {}) {
  if (out.numel() == 0) return;
  launch(out.device(), MatmulArgs<T, Out>{out.write_view("matmul"), a.view(), b.view(),
                                          bias.defined() ? bias.view() : TensorView<const T>{}});
}

/// A fresh product of operands of equal rank, batches already broadcast.
template <class Out, class T>
Tensor<Out> product(const Tensor<T>& a, const Tensor<T>& b) {
  Shape shape = a.shape();
  shape.back() = b.size(-1);
  Tensor<Out> out(shape, a.device());
  launch_matmul(out, a, b);
  return out;
}

/// Writes the product into `out`, which may be strided; operands that share its memory are
/// cloned first.
template <Element T>
void matmul_into(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b, Where where) {
  const Tensor<T> left = may_share_memory(a, out) ? a.clone() : a;
  const Tensor<T> right = may_share_memory(b, out) ? b.clone() : b;
  const MatmulPlan plan = plan_matmul(left.layout(), right.layout(), where);
  check_same_device(where, a, b);
  check_same_device(where, a, out);
  check(out.shape() == plan.shape, where, "expected an output of shape ", plan.shape, ", got ",
        out.shape());
  launch_matmul(out.with(matmul_full_layout(out.layout(), a.rank(), b.rank())), left.with(plan.a),
                right.with(plan.b));
}

}  // namespace detail

template <Element T>
struct MatmulOp : OpBase {
  static constexpr const char* name = "matmul";
  Saved<T> saved_a;
  Saved<T> saved_b;

  Tensor<T> forward(const Tensor<T>& a, const Tensor<T>& b) {
    const detail::MatmulPlan plan = detail::plan_matmul(a.layout(), b.layout(), name);
    detail::check_same_device(name, a, b);
    Tensor<T> y(plan.shape, a.device());
    detail::matmul_into(y, a, b, name);
    if (recording()) {
      saved_a.save(a);
      saved_b.save(b);
    }
    return y;
  }

  /// da = dy bᵀ, db = aᵀ dy, summed over broadcast batches. db comes as Compute<T>, for float
  /// gradients of 16-bit weights.
  Grads<2> backward(const Tensor<T>& dy) requires FloatElement<T> {
    const Tensor<T>& a = saved_a.get(name);
    const Tensor<T>& b = saved_b.get(name);
    const detail::MatmulPlan plan = detail::plan_matmul(a.layout(), b.layout(), name);
    const Tensor<T> left = a.with(plan.a);
    const Tensor<T> right = b.with(plan.b);
    const Tensor<T> dy_full = dy.with(detail::matmul_full_layout(dy.layout(), a.rank(), b.rank()));
    Grads<2> grads;
    if (needs(0)) {
      if (left.shape() == a.shape())
        grads[0] = detail::product<T>(dy_full, right.t());
      else
        grads[0] = sum_to(detail::product<Compute<T>>(dy_full, right.t()), a.shape());
    }
    if (needs(1)) {
      if (b.rank() == 2 && left.rank() > 2) {  // the batch is one long sum
        const Tensor<T> rows(detail::as_rows(left));
        const Tensor<T> dy_rows(detail::as_rows(dy_full));
        grads[1] = detail::product<Compute<T>>(rows.t(), dy_rows);
      } else {
        Tensor<Compute<T>> db = detail::product<Compute<T>>(left.t(), dy_full);
        if (b.rank() == 1) db = db.select(-1, 0);
        grads[1] = sum_to(db, b.shape());
      }
    }
    return grads;
  }
};

template <FloatElement T>
struct LinearOp : OpBase {
  static constexpr const char* name = "linear";
  Saved<T> saved_x;
  Saved<T> saved_weight;

  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight) { return run(x, weight, {}); }
  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    return run(x, weight, bias);
  }

  /// Gradients of weight and bias come as Compute<T>.
  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T>& x = saved_x.get(name);
    const Tensor<T>& weight = saved_weight.get(name);
    const Tensor<T> rows = needs(0) || needs(1) ? Tensor<T>(detail::as_rows(dy)) : dy;
    Grads<3> grads;
    if (needs(0)) grads[0] = detail::product<T>(rows, weight).view(x.shape());
    if (needs(1)) grads[1] = detail::product<Compute<T>>(rows.t(), Tensor<T>(detail::as_rows(x)));
    if (needs(2)) grads[2] = sum_to(dy, Shape{dy.size(-1)});
    return grads;
  }

 private:
  Tensor<T> run(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    detail::check_linear(x, weight, bias.defined() ? &bias.any() : nullptr);
    Shape shape = x.shape();
    shape.back() = weight.size(0);
    Tensor<T> y(shape, x.device());
    const detail::MatmulPlan plan =
        detail::plan_matmul(x.layout(), weight.layout().transpose(0, 1), name);
    detail::launch_matmul(y.with(detail::matmul_full_layout(y.layout(), x.rank(), 2)),
                          x.with(plan.a), weight.with(plan.b), bias);
    if (recording()) {
      saved_x.save(x);
      saved_weight.save(weight);
    }
    return y;
  }
};

namespace detail {
struct RunMatmul {
  template <class T, class... Xs>
  auto operator()(TypeTag<T>, const Xs&... in) const {
    return apply(MatmulOp<T>{}, in...);
  }
};
struct RunLinear {
  template <class T, class... Xs>
  auto operator()(TypeTag<T>, const Xs&... in) const {
    return apply(LinearOp<T>{}, in...);
  }
};
}  // namespace detail

/// Product of the last two dimensions; leading ones broadcast as a batch. A vector on the left
/// is a row, on the right a column, and its dimension is missing from the result. Transposed,
/// sliced and broadcast operands are not copied. Inner size 0 gives zeros. Integers wrap.
/// Throws ShapeError with both shapes, before anything is written.
template <TensorLike A, TensorLike B>
requires std::same_as<element_of<A>, element_of<B>>
auto matmul(const A& a, const B& b) { return detail::autocast(detail::RunMatmul{}, a, b); }
template <Element T>
const Tensor<T>& matmul_out(const Tensor<T>& out, const Tensor<T>& a, const Tensor<T>& b) {
  check(out.defined() && a.defined() && b.defined(), "matmul",
        "expected defined tensors, got an undefined one");
  detail::matmul_into(out, a, b, "matmul");
  return out;
}

/// x (..., in) · weightᵀ, weight (out, in): (..., out).
template <TensorLike X, TensorLike W>
requires std::same_as<element_of<X>, element_of<W>>
auto linear(const X& x, const W& weight) {
  return detail::autocast(detail::RunLinear{}, x, weight);
}
/// The same plus bias (out); an undefined bias is none.
template <TensorLike X, TensorLike W, TensorLike B>
requires std::same_as<element_of<X>, element_of<W>> && std::same_as<element_of<X>, element_of<B>>
auto linear(const X& x, const W& weight, const B& bias) {
  return detail::autocast_biased(detail::RunLinear{}, x, weight, bias);
}

}  // namespace gable
