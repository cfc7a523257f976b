// SPDX-License-Identifier: Apache-2.0
// Reductions over any dimensions: sum, mean, prod, max, min, var, std, norm, logsumexp, all, any,
// argmax, argmin.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gable/ops/elementwise.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/reduce_functors.hpp"

namespace gable {

/// Dimensions to reduce: one number, or a list; the empty list means all. Negative ones count
/// from the end.
struct DimList : Dims {
  constexpr DimList() = default;
  template <std::integral I>
  requires(!std::same_as<I, bool>) constexpr DimList(I dim)
      : Dims{static_cast<int64_t>(dim)} {}  // NOLINT
  constexpr DimList(std::initializer_list<int64_t> dims) : Dims(dims) {}
  constexpr DimList(const Dims& dims) : Dims(dims) {}  // NOLINT
};

// --- kernels' arguments

/// out = reducer over the dimensions where out has size 1 and x has not; equal ranks. shift (no
/// data: none) has out's shape.
template <class R, class T, class Out>
struct ReduceArgs {
  static constexpr const char* name = R::name;
  TensorView<Out> out;
  TensorView<const T> x;
  TensorView<const double> shift;
  R reducer;
  [[nodiscard]] Cost cost() const {
    return {.flops = R::flops * x.numel(),
            .special = R::special * x.numel(),
            .bytes_read = x.bytes(),
            .bytes_written = out.bytes()};
  }
};

/// dx = reducer.bwd(x, dy, y, aux, count); all of x's shape, dy, y and aux broadcast. aux may
/// have no data.
template <class R, class T>
struct ReduceBackwardArgs {
  static constexpr const char* name = R::name;
  TensorView<T> dx;
  TensorView<const T> x;
  TensorView<const T> dy;
  TensorView<const T> y;
  TensorView<const double> aux;
  R reducer;
  int64_t count;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * x.numel(), .bytes_read = x.bytes(), .bytes_written = dx.bytes()};
  }
};

/// out = row-major position, among the reduced dimensions, of the first extreme value (the first
/// NaN if there is one). Shapes as in ReduceArgs.
template <class T, bool IsMax>
struct ArgExtremeArgs {
  static constexpr const char* name = IsMax ? "argmax" : "argmin";
  TensorView<int64_t> out;
  TensorView<const T> x;
  [[nodiscard]] Cost cost() const {
    return {.flops = 2 * x.numel(), .bytes_read = x.bytes(), .bytes_written = out.bytes()};
  }
};
template <class T>
using ArgMaxArgs = ArgExtremeArgs<T, true>;
template <class T>
using ArgMinArgs = ArgExtremeArgs<T, false>;

/// The dtype of sums and products: int64 for integers and bool, else T.
template <Element T>
using SumResult = std::conditional_t<FloatElement<T>, T, int64_t>;

namespace detail {

/// Dense layout of x's shape with size 1 at `dims`, in x's order of dimensions in memory.
[[nodiscard]] Layout reduced_layout(const Layout& x, const Dims& dims);
/// Drops `dims`, all of size 1; the inverse of keep_dims.
[[nodiscard]] Layout drop_dims(const Layout& x, const Dims& dims);
/// Inserts size 1 at `dims` (ascending order is made).
[[nodiscard]] Layout keep_dims(const Layout& x, const Dims& dims);
/// Number of values that go into each output.
[[nodiscard]] int64_t reduced_count(const Shape& x, const Dims& dims);
/// Throws ShapeError if a result without values is asked for.
void check_not_empty(Where where, const Shape& x, const Dims& dims);
/// `out` with x's rank: its dimensions kept. Throws ShapeError unless it has the result's shape.
[[nodiscard]] AnyTensor reduce_target(Where where, const AnyTensor& out, const AnyTensor& x,
                                      const Dims& dims, bool keepdim);

template <class R, Element Out, Element T>
void reduce_into(const R& reducer, const Tensor<Out>& out, const Tensor<T>& x,
                 const Tensor<double>& shift = {}) {
  launch(x.device(), ReduceArgs<R, T, Out>{
                         out.write_view(R::name), x.view(),
                         shift.defined() ? shift.view() : TensorView<const double>{}, reducer});
}
/// With kept dimensions; `dims` are wrapped.
template <Element Out, class R, Element T>
[[nodiscard]] Tensor<Out> reduce(const R& reducer, const Tensor<T>& x, const Dims& dims,
                                 const Tensor<double>& shift = {}) {
  Tensor<Out> out(AnyTensor::empty(reduced_layout(x.layout(), dims), dtype_of<Out>, x.device()));
  reduce_into(reducer, out, x, shift);
  return out;
}
/// What a shifted reducer needs first.
template <class R, Element T>
[[nodiscard]] Tensor<double> reduce_shift(const Tensor<T>& x, const Dims& dims) {
  if constexpr (std::is_same_v<R, LogSumExp>)
    return reduce<double>(FiniteMax{}, x, dims);
  else if constexpr (R::shifted)
    return reduce<double>(Mean{}, x, dims);
  else
    return {};
}

template <class R, Element Out, Element T>
const Tensor<Out>& reduce_out(const R& reducer, const Tensor<Out>& out, const Tensor<T>& x,
                              const DimList& list, bool keepdim) {
  check(x.defined() && out.defined(), R::name, "expected defined tensors, got an undefined one");
  const Dims dims = wrap_dims(list, x.rank(), R::name);
  if (R::needs_values) check_not_empty(R::name, x.shape(), dims);
  const Tensor<Out> target(reduce_target(R::name, out, x, dims, keepdim));
  const Tensor<T> input = may_share_memory(x, out) ? x.clone() : x;
  reduce_into(reducer, target, input, reduce_shift<R>(input, dims));
  return out;
}

}  // namespace detail

// --- operators

template <class R, Element T, Element Out = T>
struct ReduceOp : OpBase {
  static constexpr const char* name = R::name;
  R reducer;
  Dims dims;
  bool keepdim;
  Shape shape;
  Layout like;  ///< of x
  Saved<T> saved_x;
  Saved<Out> saved_y;
  Tensor<double> aux;

  ReduceOp(R r, const DimList& list, bool keep) : reducer(r), dims(list), keepdim(keep) {}

  Tensor<Out> forward(const Tensor<T>& x) {
    dims = wrap_dims(dims, x.rank(), name);
    if (R::needs_values) detail::check_not_empty(name, x.shape(), dims);
    shape = x.shape();
    const Tensor<double> shift = detail::reduce_shift<R>(x, dims);
    const Tensor<Out> y = detail::reduce<Out>(reducer, x, dims, shift);
    if (recording() && !R::linear) {
      saved_x.save(x);
      saved_y.save(y);
      aux = shift;
    }
    return keepdim ? y : y.with(detail::drop_dims(y.layout(), dims));
  }

  Grads<1> backward(const Tensor<Out>& gradient) requires FloatElement<T> {
    Tensor<T> dy = gradient.template to<T>();
    if (!keepdim) dy = dy.with(detail::keep_dims(dy.layout(), dims));
    const int64_t count = detail::reduced_count(shape, dims);
    if constexpr (R::linear) {
      const double scale = R::scale(count);
      if (scale != 1) dy = mul_scalar(dy, scale);
      return {dy.expand(shape).any()};
    } else {
      const Tensor<T>& x = saved_x.get(name);
      Tensor<T> y = saved_y.get(name);
      if constexpr (std::is_same_v<R, Prod>) {
        y = detail::reduce<T>(ProdNonZero{}, x, dims);
        aux = detail::reduce<double>(CountZero{}, x, dims);
      } else if constexpr (requires { typename R::Ties; }) {
        aux = detail::reduce<double>(typename R::Ties{}, x, dims, y.template to<double>());
      }
      Tensor<T> dx = empty_like(x);
      launch(x.device(),
             ReduceBackwardArgs<R, T>{
                 dx.write_view(name), x.view(), dy.expand(shape).view(), y.expand(shape).view(),
                 aux.defined() ? aux.expand(shape).view() : TensorView<const double>{}, reducer,
                 count});
      return {dx.any()};
    }
  }
};

// --- public functions

// In all of them `dims` is one dimension, a list, or empty for all; reduced dimensions vanish, or
// with keepdim stay as size 1. Any strides. 16-bit and float values are added up in double and
// rounded once. Errors: IndexError for a dimension out of range, ShapeError for a repeated one.

// f(x, dims, keepdim) and f_out(out, x, dims, keepdim).
#define GABLE_DEFINE_REDUCTION(function, R, Result)                                   \
  template <TensorLike X>                                                             \
  auto function(const X& x, const DimList& dims = {}, bool keepdim = false) {         \
    using T = element_of<X>;                                                          \
    return apply(ReduceOp<R, T, Result>(R{}, dims, keepdim), x);                      \
  }                                                                                   \
  template <Element Out, Element T>                                                   \
  const Tensor<Out>& function##_out(const Tensor<Out>& out, const Tensor<T>& x,       \
                                    const DimList& dims = {}, bool keepdim = false) { \
    return detail::reduce_out(R{}, out, x, dims, keepdim);                            \
  }
// The same with a wider result: f<float>(half tensor), f<double>(float tensor).
#define GABLE_DEFINE_WIDE_REDUCTION(function, R)                              \
  template <Element Out, TensorLike X>                                        \
  auto function(const X& x, const DimList& dims = {}, bool keepdim = false) { \
    return apply(ReduceOp<R, element_of<X>, Out>(R{}, dims, keepdim), x);     \
  }

/// Sum; int64 for integers and bool (wrapping), else x's dtype, or Out in sum<Out>(x), where Out
/// is float for 16-bit x or double for floating point. 0 for no values.
GABLE_DEFINE_REDUCTION(sum, Sum, SumResult<T>)
GABLE_DEFINE_WIDE_REDUCTION(sum, Sum)
/// Mean of floating-point values; finite even where the sum is not. NaN for no values.
GABLE_DEFINE_REDUCTION(mean, Mean, T)
GABLE_DEFINE_WIDE_REDUCTION(mean, Mean)
/// Product, with sum's dtypes. 1 for no values.
GABLE_DEFINE_REDUCTION(prod, Prod, SumResult<T>)
/// Maximum and minimum; NaN if there is one. The gradient is split evenly among equal values, as
/// in PyTorch's amax. ShapeError for no values.
GABLE_DEFINE_REDUCTION(max, Max, T)
GABLE_DEFINE_REDUCTION(min, Min, T)
/// log(sum(exp(x))) without overflow; -inf for no values and for values that are all -inf, whose
/// gradient is 0. Floating point.
GABLE_DEFINE_REDUCTION(logsumexp, LogSumExp, T)
/// True if all (any) values are other than 0; NaN is other than 0. True (false) for no values.
GABLE_DEFINE_REDUCTION(all, All, bool)
GABLE_DEFINE_REDUCTION(any, Any, bool)
#undef GABLE_DEFINE_REDUCTION
#undef GABLE_DEFINE_WIDE_REDUCTION

/// Variance of floating-point values in two passes: sum of squared deviations over n - correction
/// (inf or NaN where that is not positive).
template <FloatTensorLike X>
auto var(const X& x, const DimList& dims = {}, bool keepdim = false, double correction = 1) {
  using R = Variance<false>;
  return apply(ReduceOp<R, element_of<X>>(R{{}, correction}, dims, keepdim), x);
}
template <FloatElement T>
const Tensor<T>& var_out(const Tensor<T>& out, const Tensor<T>& x, const DimList& dims = {},
                         bool keepdim = false, double correction = 1) {
  return detail::reduce_out(Variance<false>{{}, correction}, out, x, dims, keepdim);
}
/// Square root of var(). Its gradient is 0 where all values are equal.
template <FloatTensorLike X>
auto std(const X& x, const DimList& dims = {}, bool keepdim = false, double correction = 1) {
  using R = Variance<true>;
  return apply(ReduceOp<R, element_of<X>>(R{{}, correction}, dims, keepdim), x);
}
template <FloatElement T>
const Tensor<T>& std_out(const Tensor<T>& out, const Tensor<T>& x, const DimList& dims = {},
                         bool keepdim = false, double correction = 1) {
  return detail::reduce_out(Variance<true>{{}, correction}, out, x, dims, keepdim);
}

namespace detail {
// Calls f with the reducer of the p-norm.
template <class F>
auto visit_norm(double p, F&& f) {
  check<TypeError>(p == 1 || p == 2 || p == std::numeric_limits<double>::infinity(), "norm",
                   "expected p to be 1, 2 or infinity, got ", p);
  if (p == 1) return f(Norm1{});
  if (p == 2) return f(Norm2{});
  return f(NormInf{});
}
}  // namespace detail

/// Vector norm of floating-point values, p = 1, 2 or infinity; 0 for no values. The gradient at
/// x = 0 is 0. Throws TypeError for another p.
template <FloatTensorLike X>
auto norm(const X& x, double p = 2, const DimList& dims = {}, bool keepdim = false) {
  return detail::visit_norm(p, [&]<class R>(R reducer) {
    return apply(ReduceOp<R, element_of<X>>(reducer, dims, keepdim), x);
  });
}
template <FloatElement T>
const Tensor<T>& norm_out(const Tensor<T>& out, const Tensor<T>& x, double p = 2,
                          const DimList& dims = {}, bool keepdim = false) {
  return detail::visit_norm(p, [&](auto reducer) -> const Tensor<T>& {
    return detail::reduce_out(reducer, out, x, dims, keepdim);
  });
}

namespace detail {
template <bool IsMax, Element T>
Tensor<int64_t> arg_extreme(const Tensor<T>& x, const DimList& list, bool keepdim) {
  using Args = ArgExtremeArgs<T, IsMax>;
  check(x.defined(), Args::name, "expected a defined tensor, got an undefined one");
  const Dims dims = wrap_dims(list, x.rank(), Args::name);
  check_not_empty(Args::name, x.shape(), dims);
  const Tensor<int64_t> out(
      AnyTensor::empty(reduced_layout(x.layout(), dims), DType::int64, x.device()));
  launch(x.device(), Args{out.write_view(Args::name), x.view()});
  return keepdim ? out : out.with(drop_dims(out.layout(), dims));
}
}  // namespace detail

/// Position of the maximum (minimum) along a dimension; over several or all dimensions, the
/// row-major position among them. The first of equal values; the first NaN if there is one.
/// ShapeError for no values.
template <Element T>
[[nodiscard]] Tensor<int64_t> argmax(const Tensor<T>& x, const DimList& dims = {},
                                     bool keepdim = false) {
  return detail::arg_extreme<true>(x, dims, keepdim);
}
template <Element T>
[[nodiscard]] Tensor<int64_t> argmin(const Tensor<T>& x, const DimList& dims = {},
                                     bool keepdim = false) {
  return detail::arg_extreme<false>(x, dims, keepdim);
}

// Kernels of this file, for kernel_list.hpp; the aliases keep commas out of the macros.
template <class T>
using SumArgs = ReduceArgs<Sum, T, SumResult<T>>;
template <class T>
using MeanArgs = ReduceArgs<Mean, T, T>;
template <class T>
using ProdArgs = ReduceArgs<Prod, T, SumResult<T>>;
template <class T>
using MaxArgs = ReduceArgs<Max, T, T>;
template <class T>
using MinArgs = ReduceArgs<Min, T, T>;
template <class T>
using AllArgs = ReduceArgs<All, T, bool>;
template <class T>
using AnyArgs = ReduceArgs<Any, T, bool>;
/// FLOAT(R, T, Out): the reducers of one float type.
#define GABLE_REDUCE_KERNELS_OF(FLOAT, BACKWARD, T) \
  FLOAT(CountEqual<false>, T, double)               \
  FLOAT(CountEqual<true>, T, double)                \
  FLOAT(CountZero, T, double)                       \
  FLOAT(ProdNonZero, T, T)                          \
  FLOAT(FiniteMax, T, double)                       \
  FLOAT(LogSumExp, T, T)                            \
  FLOAT(Variance<false>, T, T)                      \
  FLOAT(Variance<true>, T, T)                       \
  FLOAT(Norm1, T, T)                                \
  FLOAT(Norm2, T, T)                                \
  FLOAT(NormInf, T, T)                              \
  BACKWARD(Prod, T)                                 \
  BACKWARD(Max, T)                                  \
  BACKWARD(Min, T)                                  \
  BACKWARD(LogSumExp, T)                            \
  BACKWARD(Variance<false>, T)                      \
  BACKWARD(Variance<true>, T)                       \
  BACKWARD(Norm1, T)                                \
  BACKWARD(Norm2, T)                                \
  BACKWARD(NormInf, T)
/// WIDE(R, T, Out): results wider than x.
#define GABLE_WIDE_REDUCE_KERNELS(WIDE) \
  WIDE(Sum, float, double)              \
  WIDE(Sum, half, double)               \
  WIDE(Sum, bfloat16, double)           \
  WIDE(Sum, half, float)                \
  WIDE(Sum, bfloat16, float)            \
  WIDE(Mean, float, double)             \
  WIDE(Mean, half, double)              \
  WIDE(Mean, bfloat16, double)          \
  WIDE(Mean, half, float)               \
  WIDE(Mean, bfloat16, float)

}  // namespace gable
