// SPDX-License-Identifier: Apache-2.0
// Argument structs of the optimizer's kernels: one pass over a parameter reads the gradient,
// updates state and master, and writes the compute copy. Calls for many parameters are launched as
// one (ManyArgs), which on CUDA is one kernel.
#pragma once

#include <cstdint>
#include <span>

#include "gable/core/cost.hpp"
#include "gable/core/dtype.hpp"
#include "gable/tensor/backend.hpp"
#include "gable/tensor/view.hpp"

namespace gable {

/// Several calls of one kernel, on one device and over distinct outputs.
template <KernelArgs Args>
struct ManyArgs {
  static constexpr const char* name = Args::name;
  std::span<const Args> calls;
  [[nodiscard]] Cost cost() const {
    Cost sum;
    for (const Args& a : calls) sum = sum + a.cost();
    return sum;
  }
};

/// What an update reads where it runs, so that the host need not know it: one element each.
struct UpdateControl {
  TensorView<const float> scale;      ///< multiplies gradients; no data: 1
  TensorView<const float> found_inf;  ///< not 0: nothing is changed; no data: always changed
  TensorView<const int64_t> skipped;  ///< earlier updates that changed nothing; no data: 0
};

/// What every update works on; all views have one shape and may be strided. T is the compute
/// copy's type; for float and double `value` and `master` are the same memory.
template <class T>
struct UpdateViews {
  TensorView<T> value;
  TensorView<Compute<T>> master;
  TensorView<const Compute<T>> gradient;

  static constexpr bool has_copy = SmallFloat<T>;
  [[nodiscard]] int64_t numel() const { return master.numel(); }
  [[nodiscard]] Cost cost(int64_t flops, int64_t state_tensors) const {
    const int64_t state = state_tensors * master.bytes();
    return {.flops = flops * numel(),
            .bytes_read = gradient.bytes() + master.bytes() + state,
            .bytes_written = master.bytes() + state + (has_copy ? value.bytes() : 0)};
  }
};

/// g = scale * gradient + weight_decay * p; with momentum b = momentum * b + (1 - dampening) * g
/// (b = g on the first step) and g = nesterov ? g + momentum * b : b; p -= lr * g.
template <class T>
struct SgdArgs {
  static constexpr const char* name = "sgd";
  UpdateViews<T> at;
  TensorView<Compute<T>> buffer;  ///< unused with momentum 0
  double lr;
  double momentum;
  double dampening;
  double weight_decay;
  double gradient_scale;
  bool nesterov;
  int64_t steps;  ///< updates with this one; in the first that changes something b has no value yet
  UpdateControl control = {};
  [[nodiscard]] Cost cost() const { return at.cost(momentum != 0 ? 7 : 4, momentum != 0 ? 1 : 0); }
};

/// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019) or, not
/// decoupled, decay added to the gradient:
/// m += (1 - beta1) (g - m); v += (1 - beta2) (g g - v);
/// p -= lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps), t the updates that changed
/// something, with this one.
template <class T>
struct AdamArgs {
  static constexpr const char* name = "adam";
  UpdateViews<T> at;
  TensorView<Compute<T>> mean;    ///< of gradients, m
  TensorView<Compute<T>> square;  ///< of their squares, v
  double beta1;
  double beta2;
  double eps;
  double lr;
  double shrink;        ///< 1 - lr * weight_decay if decoupled, else 1
  double weight_decay;  ///< added to the gradient; 0 if decoupled
  double gradient_scale;
  int64_t steps;  ///< updates with this one
  UpdateControl control = {};
  [[nodiscard]] Cost cost() const {
    Cost c = at.cost(14, 2);
    c.special = 2 * at.numel();
    return c;
  }
};

/// out = sum of squares of x, accumulated in double in an order that does not depend on the
/// number of threads; `out` is one element.
template <class T>
struct SquareSumArgs {
  static constexpr const char* name = "square_sum";
  TensorView<const T> x;
  TensorView<double> out;
  [[nodiscard]] Cost cost() const {
    return {.flops = 2 * x.numel(), .bytes_read = x.bytes(), .bytes_written = 8};
  }
};

/// gradient /= scale; found_inf becomes 1 if a result is not finite.
template <class C>
struct UnscaleArgs {
  static constexpr const char* name = "unscale";
  TensorView<C> gradient;
  TensorView<const float> scale;
  TensorView<float> found_inf;
  [[nodiscard]] Cost cost() const {
    return {.flops = gradient.numel(),
            .bytes_read = gradient.bytes(),
            .bytes_written = gradient.bytes()};
  }
};

/// From sums of squares of gradients that are to be multiplied by `scale` (no data: 1): norm, the
/// factor min(1, max_norm / (norm + 1e-6)) times that scale, and whether the norm is not finite
/// (then the factor is the scale). One element each but for the sums.
struct ClipFactorArgs {
  static constexpr const char* name = "clip_factor";
  TensorView<const double> sums;
  TensorView<const float> scale;
  TensorView<double> norm;
  TensorView<float> factor;
  TensorView<float> found_inf;
  double max_norm;
  [[nodiscard]] Cost cost() const {
    return {.flops = sums.numel(), .bytes_read = sums.bytes(), .bytes_written = 16};
  }
};

/// The loss scale after a step: times `backoff` if infinities were found, times `growth` after
/// `interval` steps without (unless that is infinite). Counts the step and clears found_inf.
struct ScalerUpdateArgs {
  static constexpr const char* name = "scaler_update";
  TensorView<float> scale;
  TensorView<float> found_inf;
  TensorView<int64_t> streak;   ///< steps without infinities since the last change
  TensorView<int64_t> taken;    ///< steps that changed parameters
  TensorView<int64_t> skipped;  ///< steps that did not
  double growth;
  double backoff;
  int64_t interval;
  [[nodiscard]] static Cost cost() { return {.flops = 1, .bytes_read = 32, .bytes_written = 32}; }
};

template <class T>
using SgdManyArgs = ManyArgs<SgdArgs<T>>;
template <class T>
using AdamManyArgs = ManyArgs<AdamArgs<T>>;

}  // namespace gable
