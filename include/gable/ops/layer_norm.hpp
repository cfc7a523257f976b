// SPDX-License-Identifier: Apache-2.0
// Layer norm (Ba et al. 2016) and RMS norm (Zhang & Sennrich 2019) over the last dimensions.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "gable/ops/op.hpp"

namespace gable {

// --- kernels' arguments; rows are the leading dimensions, x has inner_rank more

/// y = (x - mean) * rstd * gamma + beta a row, with Center; without it mean is 0 and rstd is that
/// of the mean square. gamma and beta (dense, of a row's elements) without data are 1 and 0. mean
/// and rstd are dense over the rows.
template <class T, bool Center>
struct RowNormArgs {
  static constexpr const char* name = Center ? "layer_norm" : "rms_norm";
  TensorView<T> y;
  TensorView<double> mean;  ///< no data without Center
  TensorView<Compute<T>> rstd;
  TensorView<const T> x;
  TensorView<const Compute<T>> gamma;
  TensorView<const Compute<T>> beta;
  int inner_rank;
  double eps;
  [[nodiscard]] Cost cost() const {
    return {.flops = (Center ? 8 : 4) * x.numel(),
            .special = rstd.numel(),
            .bytes_read = x.bytes(),
            .bytes_written = y.bytes()};
  }
};

/// dx, dgamma and dbeta (no data: not wanted; the last two dense).
template <class T, bool Center>
struct RowNormBackwardArgs {
  static constexpr const char* name = Center ? "layer_norm_backward" : "rms_norm_backward";
  TensorView<T> dx;
  TensorView<Compute<T>> dgamma;
  TensorView<Compute<T>> dbeta;
  TensorView<const T> dy;
  TensorView<const T> x;
  TensorView<const double> mean;
  TensorView<const Compute<T>> rstd;
  TensorView<const Compute<T>> gamma;
  int inner_rank;
  [[nodiscard]] Cost cost() const {
    return {.flops = 12 * x.numel(),
            .bytes_read = dy.bytes() + x.bytes(),
            .bytes_written = dx.data != nullptr ? dx.bytes() : 0};
  }
};

template <class T>
using LayerNormArgs = RowNormArgs<T, true>;
template <class T>
using LayerNormBackwardArgs = RowNormBackwardArgs<T, true>;
template <class T>
using RmsNormArgs = RowNormArgs<T, false>;
template <class T>
using RmsNormBackwardArgs = RowNormBackwardArgs<T, false>;

// --- operators

template <FloatElement T, bool Center>
struct RowNormOp : OpBase {
  static constexpr const char* name = Center ? "layer_norm" : "rms_norm";
  using C = Compute<T>;
  Shape normalized;
  double eps;
  Saved<T> saved_x;
  Saved<C> saved_gamma;
  Saved<double> saved_mean;
  Saved<C> saved_rstd;  ///< the shape of the rows

  RowNormOp(const Shape& normalized_shape, double epsilon)
      : normalized(normalized_shape), eps(epsilon) {}

  Tensor<T> forward(const Tensor<T>& x) { return run(x, {}, {}); }
  Tensor<T> forward(const Tensor<T>& x, const Tensor<C>& gamma) { return run(x, gamma, {}); }
  Tensor<T> forward(const Tensor<T>& x, const Tensor<C>& gamma, const Tensor<C>& beta) {
    return run(x, gamma, beta);
  }

  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T>& x = saved_x.get(name);
    const Tensor<C>& gamma = saved_gamma.get(name);
    RowNormBackwardArgs<T, Center> args{{},
                                        {},
                                        {},
                                        dy.view(),
                                        x.view(),
                                        {},
                                        saved_rstd.get(name).view(),
                                        view(gamma),
                                        normalized.size()};
    if (saved_mean.defined()) args.mean = saved_mean.get(name).view();
    Tensor<T> dx;
    Tensor<C> dgamma;
    Tensor<C> dbeta;
    if (needs(0)) args.dx = (dx = empty_like(x)).write_view(name);
    if (needs(1)) args.dgamma = (dgamma = Tensor<C>(normalized, x.device())).write_view(name);
    if (needs(2)) args.dbeta = (dbeta = Tensor<C>(normalized, x.device())).write_view(name);
    launch(x.device(), args);
    return {dx.any(), dgamma.any(), dbeta.any()};
  }

 private:
  static TensorView<const C> view(const Tensor<C>& t) {
    return t.defined() ? t.view() : TensorView<const C>{};
  }

  Tensor<T> run(const Tensor<T>& x, const Tensor<C>& gamma, const Tensor<C>& beta) {
    const Shape rows = check_inputs(x, gamma, beta);
    const Tensor<C> weight = gamma.defined() ? materialize(gamma) : gamma;
    const Tensor<C> bias = beta.defined() ? materialize(beta) : beta;
    Tensor<double> mean = Center ? Tensor<double>(rows, x.device()) : Tensor<double>();
    Tensor<C> rstd(rows, x.device());
    Tensor<T> y = empty_like(x);
    launch(x.device(), RowNormArgs<T, Center>{y.write_view(name),
                                              Center ? mean.write_view(name) : TensorView<double>{},
                                              rstd.write_view(name), x.view(), view(weight),
                                              view(bias), normalized.size(), eps});
    if (recording()) {
      saved_x.save(x);
      saved_rstd.save(rstd);
      if (Center) saved_mean.save(mean);
      if (weight.defined()) saved_gamma.save(weight);
    }
    return y;
  }

  // Returns the shape of the rows.
  Shape check_inputs(const Tensor<T>& x, const Tensor<C>& gamma, const Tensor<C>& beta) const {
    const int outer = x.rank() - normalized.size();
    bool fits = !normalized.empty() && outer >= 0;
    for (int d = 0; fits && d < normalized.size(); ++d)
      fits = x.shape()[outer + d] == normalized[d];
    check(fits, name, "expected an input whose last dimensions are ", normalized, ", got ",
          x.shape());
    check(numel(normalized) > 0, name, "expected at least one value a row, got ", x.shape());
    auto affine = [&](const Tensor<C>& t, const char* what) {
      if (!t.defined()) return;
      check(t.shape() == normalized, name, "expected ", what, " of shape ", normalized, ", got ",
            t.shape());
      detail::check_same_device(name, x, t);
    };
    affine(gamma, "gamma");
    affine(beta, "beta");
    check<TypeError>(std::isfinite(eps) && eps >= 0, name, "expected a finite eps >= 0, got ", eps);
    Shape rows;
    for (int d = 0; d < outer; ++d) rows.push_back(x.shape()[d]);
    return rows;
  }
};

template <class T>
using LayerNormOp = RowNormOp<T, true>;
template <class T>
using RmsNormOp = RowNormOp<T, false>;

/// y = (x - mean) / sqrt(var + eps) * gamma + beta over the last dimensions, which must equal
/// `normalized`; mean and biased variance of each row, found in two passes. gamma and beta:
/// `normalized` in shape, of Compute<T>, so float for 16-bit x. Any strides, no copy of x.
/// Throws ShapeError for other shapes and for rows of no values.
template <FloatTensorLike X, FloatTensorLike G, FloatTensorLike B>
auto layer_norm(const X& x, const Shape& normalized, const G& gamma, const B& beta,
                double eps = 1e-5) {
  return apply(LayerNormOp<element_of<X>>(normalized, eps), x, gamma, beta);
}
/// With gamma only.
template <FloatTensorLike X, FloatTensorLike G>
auto layer_norm(const X& x, const Shape& normalized, const G& gamma, double eps = 1e-5) {
  return apply(LayerNormOp<element_of<X>>(normalized, eps), x, gamma);
}
template <FloatTensorLike X>
auto layer_norm(const X& x, const Shape& normalized, double eps = 1e-5) {
  return apply(LayerNormOp<element_of<X>>(normalized, eps), x);
}

/// y = x / sqrt(mean(x^2) + eps) * gamma over the last dimensions, which must equal `normalized`.
/// Otherwise as layer_norm().
template <FloatTensorLike X, FloatTensorLike G>
auto rms_norm(const X& x, const Shape& normalized, const G& gamma, double eps = 1e-6) {
  return apply(RmsNormOp<element_of<X>>(normalized, eps), x, gamma);
}
template <FloatTensorLike X>
auto rms_norm(const X& x, const Shape& normalized, double eps = 1e-6) {
  return apply(RmsNormOp<element_of<X>>(normalized, eps), x);
}

}  // namespace gable
