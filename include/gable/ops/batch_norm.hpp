// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of (N, C, ...) over everything but C (Ioffe & Szegedy 2015).
#pragma once

#include <cmath>
#include <cstdint>

#include "gable/ops/elementwise.hpp"
#include "gable/ops/op.hpp"

namespace gable {

// --- kernels' arguments; every per-channel view is dense (C)

/// Mean and 1 / sqrt(var + eps) a channel; running statistics (no data: none) move towards the
/// mean and the unbiased variance by `momentum`.
template <class T>
struct BatchNormStatsArgs {
  static constexpr const char* name = "batch_norm_stats";
  TensorView<const T> x;
  TensorView<double> mean;  ///< double: a float mean far from 0 is too coarse for the spread
  TensorView<Compute<T>> rstd;
  TensorView<Compute<T>> running_mean;
  TensorView<Compute<T>> running_var;
  double momentum;
  double eps;
  [[nodiscard]] Cost cost() const {
    return {.flops = 5 * x.numel(),
            .special = rstd.numel(),
            .bytes_read = x.bytes(),
            .bytes_written = mean.bytes() + rstd.bytes()};
  }
};

/// y = (x - mean) * rstd * gamma + beta; gamma and beta without data are 1 and 0.
template <class T>
struct BatchNormApplyArgs {
  static constexpr const char* name = "batch_norm";
  TensorView<T> y;
  TensorView<const T> x;
  TensorView<const double> mean;
  TensorView<const Compute<T>> rstd;
  TensorView<const Compute<T>> gamma;
  TensorView<const Compute<T>> beta;
  [[nodiscard]] Cost cost() const {
    return {.flops = 3 * x.numel(), .bytes_read = x.bytes(), .bytes_written = y.bytes()};
  }
};

/// dbeta = sum dy, dgamma = sum dy xhat; dx (no data: not wanted) with the terms of the batch
/// statistics if `training`.
template <class T>
struct BatchNormBackwardArgs {
  static constexpr const char* name = "batch_norm_backward";
  TensorView<T> dx;
  TensorView<Compute<T>> dgamma;
  TensorView<Compute<T>> dbeta;
  TensorView<const T> dy;
  TensorView<const T> x;
  TensorView<const double> mean;
  TensorView<const Compute<T>> rstd;
  TensorView<const Compute<T>> gamma;
  bool training;
  [[nodiscard]] Cost cost() const {
    const int64_t passes = dx.data != nullptr ? 2 : 1;
    return {.flops = 5 * passes * x.numel(),
            .bytes_read = dy.bytes() + x.bytes(),
            .bytes_written = dx.data != nullptr ? dx.bytes() : 0};
  }
};

// --- operator

/// C is float for 16-bit inputs, else the input's type.
template <FloatElement C>
struct BatchNormOptions {
  Tensor<C> running_mean = {};  ///< (C); both undefined: not tracked
  Tensor<C> running_var = {};
  bool training = true;   ///< batch statistics; else the running ones
  double momentum = 0.1;  ///< weight of the batch in the running statistics
  double eps = 1e-5;
};

template <FloatElement T>
struct BatchNormOp : OpBase {
  static constexpr const char* name = "batch_norm";
  using C = Compute<T>;
  BatchNormOptions<C> options;
  Saved<T> saved_x;
  Saved<C> saved_gamma;
  Saved<double> saved_mean;
  Saved<C> saved_rstd;

  explicit BatchNormOp(BatchNormOptions<C> o) : options(std::move(o)) {}

  Tensor<T> forward(const Tensor<T>& x) { return forward(x, Tensor<C>(), Tensor<C>()); }

  Tensor<T> forward(const Tensor<T>& x, const Tensor<C>& gamma, const Tensor<C>& beta) {
    check_inputs(x, gamma, beta);
    const Tensor<C> weight = dense(gamma);
    const Tensor<C> bias = dense(beta);
    Tensor<double> mean;
    Tensor<C> rstd;
    if (options.training) {
      const Shape channels{x.shape()[1]};
      mean = Tensor<double>(channels, x.device());
      rstd = Tensor<C>(channels, x.device());
      launch(x.device(),
             BatchNormStatsArgs<T>{x.view(), mean.write_view(name), rstd.write_view(name),
                                   running(options.running_mean), running(options.running_var),
                                   options.momentum, options.eps});
    } else {
      mean = options.running_mean.template to<double>();
      rstd = rsqrt(options.running_var + options.eps);
    }
    Tensor<T> y = empty_like(x);
    launch(x.device(), BatchNormApplyArgs<T>{y.write_view(name), x.view(), mean.view(), rstd.view(),
                                             view(weight), view(bias)});
    if (recording()) {
      saved_x.save(x);
      saved_mean.save(mean);
      saved_rstd.save(rstd);
      if (weight.defined()) saved_gamma.save(weight);
    }
    return y;
  }

  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T>& x = saved_x.get(name);
    const Tensor<C>& gamma = saved_gamma.get(name);
    const Shape channels{x.shape()[1]};
    Tensor<T> dx = needs(0) ? empty_like(x) : Tensor<T>();
    Tensor<C> dgamma(channels, x.device());
    Tensor<C> dbeta(channels, x.device());
    launch(x.device(),
           BatchNormBackwardArgs<T>{needs(0) ? dx.write_view(name) : TensorView<T>{},
                                    dgamma.write_view(name), dbeta.write_view(name), dy.view(),
                                    x.view(), saved_mean.get(name).view(),
                                    saved_rstd.get(name).view(), view(gamma), options.training});
    return {dx.any(), needs(1) ? dgamma.any() : AnyTensor(), needs(2) ? dbeta.any() : AnyTensor()};
  }

 private:
  static TensorView<const C> view(const Tensor<C>& t) {
    return t.defined() ? t.view() : TensorView<const C>{};
  }
  static TensorView<C> running(const Tensor<C>& t) {
    return t.defined() ? t.write_view(name) : TensorView<C>{};
  }
  static Tensor<C> dense(const Tensor<C>& t) { return t.defined() ? materialize(t) : t; }

  void check_inputs(const Tensor<T>& x, const Tensor<C>& gamma, const Tensor<C>& beta) const {
    check(x.rank() >= 2, name, "expected an input (N, C, ...), got ", x.shape());
    const Shape channels{x.shape()[1]};
    auto vector = [&](const Tensor<C>& t, const char* what, bool contiguous) {
      if (!t.defined()) return;
      check(t.shape() == channels, name, "expected ", what, " of shape ", channels,
            " for an input ", x.shape(), ", got ", t.shape());
      check(!contiguous || t.is_contiguous(), name, "expected ", what, " to be contiguous, got ",
            t.layout());
      detail::check_same_device(name, x, t);
    };
    vector(gamma, "gamma", false);
    vector(beta, "beta", false);
    vector(options.running_mean, "running_mean", true);
    vector(options.running_var, "running_var", true);
    check<TypeError>(std::isfinite(options.eps) && options.eps >= 0, name,
                     "expected a finite eps >= 0, got ", options.eps);
    const bool tracked = options.running_mean.defined() && options.running_var.defined();
    check<TypeError>(tracked == (options.running_mean.defined() || options.running_var.defined()),
                     name, "expected both running statistics or neither, got one");
    if (options.training) {
      // The unbiased variance of one value does not exist (pytorch/pytorch#1381).
      check(channels[0] == 0 || x.numel() / channels[0] > 1, name,
            "expected more than one value a channel when training, got shape ", x.shape());
      check<TypeError>(options.momentum >= 0 && options.momentum <= 1, name,
                       "expected a momentum in [0, 1], got ", options.momentum);
    } else {
      check<TypeError>(tracked, name, "expected running statistics in evaluation, got none");
    }
  }
};

/// y = (x - mean) / sqrt(var + eps) * gamma + beta for each channel of x (N, C, ...), any layout;
/// channels-last is the fast one. gamma and beta: (C) of Compute<T>, so float for 16-bit x. When
/// training, mean and biased variance are the batch's, found in two passes, and the running
/// statistics are updated in place (unbiased variance). The result has x's layout.
/// Throws ShapeError for other shapes and, when training, for one value a channel.
template <FloatTensorLike X, FloatTensorLike G, FloatTensorLike B>
auto batch_norm(const X& x, const G& gamma, const B& beta,
                BatchNormOptions<Compute<element_of<X>>> options = {}) {
  return apply(BatchNormOp<element_of<X>>(std::move(options)), x, gamma, beta);
}
/// Without gamma and beta.
template <FloatTensorLike X>
auto batch_norm(const X& x, BatchNormOptions<Compute<element_of<X>>> options = {}) {
  return apply(BatchNormOp<element_of<X>>(std::move(options)), x);
}

}  // namespace gable
