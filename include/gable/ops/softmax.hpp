// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, masked_softmax, cumsum.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gable/ops/op.hpp"
#include "gable/ops/reduce.hpp"

namespace gable {

// --- kernels' arguments

/// y = softmax (or its logarithm) of x along `dim`. mask (no data: none) has x's shape; where it
/// is false, x counts as -inf and y is 0, also in rows that are masked wholly.
template <class T>
struct SoftmaxArgs {
  static constexpr const char* name = "softmax";
  TensorView<T> y;
  TensorView<const T> x;
  TensorView<const bool> mask;
  int dim;
  bool log;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * x.numel(),
            .special = x.numel(),
            .bytes_read = x.bytes(),
            .bytes_written = y.bytes()};
  }
};

/// dx from the output y: y (dy - sum(y dy)), or dy - exp(y) sum(dy) of the logarithm. Exactly 0
/// where the probability is 0.
template <class T>
struct SoftmaxBackwardArgs {
  static constexpr const char* name = "softmax_backward";
  TensorView<T> dx;
  TensorView<const T> dy;
  TensorView<const T> y;
  int dim;
  bool log;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * y.numel(),
            .special = log ? y.numel() : 0,
            .bytes_read = dy.bytes() + y.bytes(),
            .bytes_written = dx.bytes()};
  }
};

/// y[i] = x[0] + ... + x[i] along `dim`, from the end if `reverse`.
template <class T>
struct CumsumArgs {
  static constexpr const char* name = "cumsum";
  TensorView<SumResult<T>> y;
  TensorView<const T> x;
  int dim;
  bool reverse;
  [[nodiscard]] Cost cost() const {
    return {.flops = x.numel(), .bytes_read = x.bytes(), .bytes_written = y.bytes()};
  }
};

// --- operators

template <FloatElement T, bool Log>
struct SoftmaxOp : OpBase {
  static constexpr const char* name = Log ? "log_softmax" : "softmax";
  int64_t dim;
  Saved<T> saved_y;

  explicit SoftmaxOp(int64_t d) : dim(d) {}

  Tensor<T> forward(const Tensor<T>& x) {
    const Tensor<T> y = empty_like(x);
    run(y, x, {});
    return y;
  }
  /// For the out form: `y` may be x itself.
  void run(const Tensor<T>& y, const Tensor<T>& x, const TensorView<const bool>& mask) {
    dim = wrap_dim(dim, x.rank(), name);
    if (x.rank() == 0) {  // one value
      launch(x.device(),
             SoftmaxArgs<T>{y.unsqueeze(0).write_view(name), x.unsqueeze(0).view(),
                            mask.data != nullptr
                                ? TensorView<const bool>{mask.data, mask.layout.unsqueeze(0)}
                                : mask,
                            0, Log});
    } else {
      launch(x.device(),
             SoftmaxArgs<T>{y.write_view(name), x.view(), mask, static_cast<int>(dim), Log});
    }
    if (recording()) saved_y.save(y);
  }
  Grads<1> backward(const Tensor<T>& dy) {
    Tensor<T> y = saved_y.get(name);
    const Tensor<T> dx = empty_like(y);
    Tensor<T> target = dx;
    Tensor<T> gradient = dy;
    if (y.rank() == 0) {
      y = y.unsqueeze(0);
      target = dx.unsqueeze(0);
      gradient = dy.unsqueeze(0);
    }
    launch(y.device(), SoftmaxBackwardArgs<T>{target.write_view(name), gradient.view(), y.view(),
                                              static_cast<int>(dim), Log});
    return {dx.any()};
  }
};

template <FloatElement T>
struct MaskedSoftmaxOp : SoftmaxOp<T, false> {
  static constexpr const char* name = "masked_softmax";
  using SoftmaxOp<T, false>::SoftmaxOp;

  Tensor<T> forward(const Tensor<T>& x, const Tensor<bool>& mask) {
    detail::common_device(name, x, mask);
    const Tensor<T> y = empty_like(x);
    this->run(y, x, Tensor<bool>(mask.any().with(mask.layout().expand(x.shape(), name))).view());
    return y;
  }
  Grads<2> backward(const Tensor<T>& dy) {
    return {SoftmaxOp<T, false>::backward(dy)[0], AnyTensor()};
  }
};

template <Element T>
struct CumsumOp : OpBase {
  static constexpr const char* name = "cumsum";
  int64_t dim;

  explicit CumsumOp(int64_t d) : dim(d) {}

  Tensor<SumResult<T>> forward(const Tensor<T>& x) { return run(x, false); }
  Grads<1> backward(const Tensor<T>& dy) requires FloatElement<T> { return {run(dy, true).any()}; }

 private:
  [[nodiscard]] Tensor<SumResult<T>> run(const Tensor<T>& x, bool reverse) const {
    using Out = SumResult<T>;
    const int d = wrap_dim(dim, x.rank(), name);
    const Tensor<Out> y(AnyTensor::empty(x.layout().like(), dtype_of<Out>, x.device()));
    if (x.rank() == 0) return y.copy_(x);
    launch(x.device(), CumsumArgs<T>{y.write_view(name), x.view(), d, reverse});
    return y;
  }
};

// --- public functions

/// exp(x) / sum(exp(x)) along `dim`, without overflow. Any strides. A row that is all -inf, or
/// holds NaN or +inf, is NaN. -inf gives exactly 0, and so does its gradient.
template <FloatTensorLike X>
auto softmax(const X& x, int64_t dim) {
  return apply(SoftmaxOp<element_of<X>, false>(dim), x);
}
/// `out` may be x.
template <FloatElement T>
const Tensor<T>& softmax_out(const Tensor<T>& out, const Tensor<T>& x, int64_t dim) {
  check(x.defined(), "softmax", "expected a defined tensor, got an undefined one");
  detail::check_out("softmax", out, x, x.shape());
  SoftmaxOp<T, false>(dim).run(out, Tensor<T>(detail::separate(x, out)), {});
  return out;
}

/// log(softmax(x)), accurate for small probabilities. Special values as in softmax(); -inf stays
/// -inf and has gradient 0.
template <FloatTensorLike X>
auto log_softmax(const X& x, int64_t dim) {
  return apply(SoftmaxOp<element_of<X>, true>(dim), x);
}
template <FloatElement T>
const Tensor<T>& log_softmax_out(const Tensor<T>& out, const Tensor<T>& x, int64_t dim) {
  check(x.defined(), "log_softmax", "expected a defined tensor, got an undefined one");
  detail::check_out("log_softmax", out, x, x.shape());
  SoftmaxOp<T, true>(dim).run(out, Tensor<T>(detail::separate(x, out)), {});
  return out;
}

/// softmax() over the elements where `mask` (broadcast to x) is true; the others are exactly 0.
/// A row without such elements, or with only -inf among them, is 0, and so is its gradient.
template <FloatTensorLike X>
auto masked_softmax(const X& x, const Tensor<bool>& mask, int64_t dim) {
  return apply(MaskedSoftmaxOp<element_of<X>>(dim), x, mask);
}

/// Running sum along `dim`; int64 for integers and bool. Floating point is summed in double and
/// each element rounded once.
template <TensorLike X>
auto cumsum(const X& x, int64_t dim) {
  return apply(CumsumOp<element_of<X>>(dim), x);
}
template <Element T>
const Tensor<SumResult<T>>& cumsum_out(const Tensor<SumResult<T>>& out, const Tensor<T>& x,
                                       int64_t dim) {
  check(x.defined(), "cumsum", "expected a defined tensor, got an undefined one");
  detail::check_out("cumsum", out, x, x.shape());
  out.copy_(CumsumOp<T>(dim).forward(x));
  return out;
}

}  // namespace gable
