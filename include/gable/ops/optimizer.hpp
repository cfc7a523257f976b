// SPDX-License-Identifier: Apache-2.0
// Argument structs of the optimizer's kernels: one pass over a parameter reads the gradient,
// updates state and master, and writes the compute copy.
#pragma once

#include <cstdint>

#include "gable/core/cost.hpp"
#include "gable/core/dtype.hpp"
#include "gable/tensor/view.hpp"

namespace gable {

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
  bool first;  ///< the buffer has no value yet
  [[nodiscard]] Cost cost() const { return at.cost(momentum != 0 ? 7 : 4, momentum != 0 ? 1 : 0); }
};

/// Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019) or, not
/// decoupled, decay added to the gradient:
/// m += (1 - beta1) (g - m); v += (1 - beta2) (g g - v); p -= step_size m / (sqrt(v) / root + eps).
template <class T>
struct AdamArgs {
  static constexpr const char* name = "adam";
  UpdateViews<T> at;
  TensorView<Compute<T>> mean;    ///< of gradients, m
  TensorView<Compute<T>> square;  ///< of their squares, v
  double beta1;
  double beta2;
  double eps;
  double step_size;     ///< lr / (1 - beta1^t)
  double root;          ///< sqrt(1 - beta2^t)
  double shrink;        ///< 1 - lr * weight_decay if decoupled, else 1
  double weight_decay;  ///< added to the gradient; 0 if decoupled
  double gradient_scale;
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

}  // namespace gable
