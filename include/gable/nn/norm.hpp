// SPDX-License-Identifier: Apache-2.0
// Normalisation layers. Their parameters and statistics are float also in 16-bit models.
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/init.hpp"
#include "gable/nn/module.hpp"
#include "gable/ops/batch_norm.hpp"
#include "gable/ops/layer_norm.hpp"

namespace gable::nn {

struct BatchNormLayerOptions {
  double eps = 1e-5;
  double momentum = 0.1;
  bool affine = true;
  bool track_running_stats = true;  ///< false: batch statistics in evaluation, too
};

/// Batch norm of (N, C, ...) of any rank >= 2; weight 1 and bias 0 at first.
template <FloatElement T>
class BatchNorm : public Module<T> {
 public:
  using C = Compute<T>;
  explicit BatchNorm(int64_t channels, BatchNormLayerOptions o = {})
      : options(o), channels_(channels) {
    if (o.affine) {
      weight = Parameter<C>(ones<C>({channels}));
      bias = Parameter<C>(zeros<C>({channels}));
    }
    if (o.track_running_stats) {
      running_mean = zeros<C>({channels});
      running_var = ones<C>({channels});
      num_batches_tracked = zeros<int64_t>({});
    }
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
    this->register_buffer("running_mean", running_mean);
    this->register_buffer("running_var", running_var);
    this->register_buffer("num_batches_tracked", num_batches_tracked);
  }

  Variable<T> forward(const Variable<T>& x) override {
    const bool batch = this->training() || !running_mean.defined();
    const BatchNormOptions<C> o{running_mean, running_var, batch, options.momentum, options.eps};
    Variable<T> y = weight.defined() ? batch_norm(x, weight, bias, o) : batch_norm(x, o);
    if (this->training() && num_batches_tracked.defined()) add_scalar_(num_batches_tracked, 1);
    return y;
  }
  [[nodiscard]] std::string describe() const override { return text("BatchNorm"); }

  BatchNormLayerOptions options;
  Parameter<C> weight;                  ///< (C), or undefined
  Parameter<C> bias;                    ///< (C), or undefined
  Tensor<C> running_mean;               ///< (C), or undefined
  Tensor<C> running_var;                ///< (C), or undefined
  Tensor<int64_t> num_batches_tracked;  ///< scalar, for PyTorch's state dicts

 protected:
  [[nodiscard]] std::string text(const char* kind) const {
    return concat(kind, "(", channels_, weight.defined() ? "" : ", no affine", ")");
  }

 private:
  int64_t channels_;
};

/// Of (N, C) and (N, C, L). Throws ShapeError for other ranks.
template <FloatElement T>
class BatchNorm1d : public BatchNorm<T> {
 public:
  using BatchNorm<T>::BatchNorm;
  Variable<T> forward(const Variable<T>& x) override {
    check(x.rank() == 2 || x.rank() == 3, "batch_norm1d",
          "expected an input (N, C) or (N, C, L), got ", x.shape());
    return BatchNorm<T>::forward(x);
  }
  [[nodiscard]] std::string describe() const override { return this->text("BatchNorm1d"); }
};

/// Of (N, C, H, W). Throws ShapeError for other ranks.
template <FloatElement T>
class BatchNorm2d : public BatchNorm<T> {
 public:
  using BatchNorm<T>::BatchNorm;
  Variable<T> forward(const Variable<T>& x) override {
    check(x.rank() == 4, "batch_norm2d", "expected an input (N, C, H, W), got ", x.shape());
    return BatchNorm<T>::forward(x);
  }
  [[nodiscard]] std::string describe() const override { return this->text("BatchNorm2d"); }
};

/// Over the last dimensions, which must be `normalized`; weight 1 and bias 0 at first.
template <FloatElement T>
class LayerNorm : public Module<T> {
 public:
  using C = Compute<T>;
  explicit LayerNorm(const Shape& normalized, double epsilon = 1e-5, bool affine = true)
      : eps(epsilon), normalized_(normalized) {
    if (affine) {
      weight = Parameter<C>(ones<C>(normalized));
      bias = Parameter<C>(zeros<C>(normalized));
    }
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
  }
  Variable<T> forward(const Variable<T>& x) override {
    if (weight.defined()) return layer_norm(x, normalized_, weight, bias, eps);
    return layer_norm(x, normalized_, eps);
  }
  [[nodiscard]] std::string describe() const override { return concat("LayerNorm", normalized_); }

  double eps;
  Parameter<C> weight;
  Parameter<C> bias;

 private:
  Shape normalized_;
};

/// Over the last dimensions, which must be `normalized`; weight 1 at first.
template <FloatElement T>
class RMSNorm : public Module<T> {
 public:
  using C = Compute<T>;
  explicit RMSNorm(const Shape& normalized, double epsilon = 1e-6, bool affine = true)
      : eps(epsilon), normalized_(normalized) {
    if (affine) weight = Parameter<C>(ones<C>(normalized));
    this->register_parameter("weight", weight);
  }
  Variable<T> forward(const Variable<T>& x) override {
    if (weight.defined()) return rms_norm(x, normalized_, weight, eps);
    return rms_norm(x, normalized_, eps);
  }
  [[nodiscard]] std::string describe() const override { return concat("RMSNorm", normalized_); }

  double eps;
  Parameter<C> weight;

 private:
  Shape normalized_;
};
GABLE_MODULE(extern, BatchNorm)
GABLE_MODULE(extern, BatchNorm1d)
GABLE_MODULE(extern, BatchNorm2d)
GABLE_MODULE(extern, LayerNorm)
GABLE_MODULE(extern, RMSNorm)

}  // namespace gable::nn
