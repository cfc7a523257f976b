// SPDX-License-Identifier: Apache-2.0
// Losses: cross_entropy, mse_loss, l1_loss, binary_cross_entropy_with_logits. The result has
// dtype Compute<T>, so float for 16-bit inputs. Shapes must be equal: losses never broadcast.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "gable/ops/check_indices.hpp"
#include "gable/ops/math.hpp"
#include "gable/ops/op.hpp"

namespace gable {

/// What becomes of the loss of each position: its mean, its sum, or nothing. The mean over no
/// positions is 0, with gradient 0.
enum class Reduction : uint8_t { mean, sum, none };

// --- kernels' arguments

/// Per position of x (N, C, d...): (1 - s) w[t] (lse - x[t]) + s / C sum_c w[c] (lse - x[c]), where
/// lse is the logarithm of the sum of exp(x); 0 where the target is ignore_index. The mean divides
/// by the sum of w[t] over the positions that are not ignored.
template <class T>
struct CrossEntropyArgs {
  static constexpr const char* name = "cross_entropy";
  TensorView<Compute<T>> loss;          ///< one element, or (N, d...) without a reduction
  TensorView<double> lse;               ///< (N, d...), dense
  TensorView<double> scale;             ///< one element: what the sum is multiplied by
  TensorView<const T> x;                ///< (N, C, d...)
  TensorView<const int64_t> targets;    ///< (N, d...), in range
  TensorView<const Compute<T>> weight;  ///< (C); no data: 1
  int64_t ignore_index;
  double smoothing;
  Reduction reduction;
  [[nodiscard]] Cost cost() const {
    return {.flops = 3 * x.numel(),
            .special = x.numel(),
            .bytes_read = x.bytes() + targets.bytes(),
            .bytes_written = loss.bytes()};
  }
};

/// dx of the same; dy has the loss's shape.
template <class T>
struct CrossEntropyBackwardArgs {
  static constexpr const char* name = "cross_entropy_backward";
  TensorView<T> dx;
  TensorView<const Compute<T>> dy;
  TensorView<const double> lse;
  TensorView<const double> scale;
  TensorView<const T> x;
  TensorView<const int64_t> targets;
  TensorView<const Compute<T>> weight;
  int64_t ignore_index;
  double smoothing;
  [[nodiscard]] Cost cost() const {
    return {.flops = 3 * x.numel(),
            .special = x.numel(),
            .bytes_read = x.bytes() + targets.bytes(),
            .bytes_written = dx.bytes()};
  }
};

/// loss = reduction of f.fwd(x, target, weight) over equally shaped views; weight may have no data.
template <class F, class T>
struct PairLossArgs {
  static constexpr const char* name = F::name;
  TensorView<Compute<T>> loss;  ///< one element, or x's shape without a reduction
  TensorView<const T> x;
  TensorView<const T> target;
  TensorView<const Compute<T>> weight;
  Reduction reduction;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * x.numel(),
            .special = F::special * x.numel(),
            .bytes_read = x.bytes() + target.bytes(),
            .bytes_written = loss.bytes()};
  }
};

/// dx and dtarget (no data: not wanted) = scale dy f.bwd(x, target, weight); dy has x's shape.
template <class F, class T>
struct PairLossBackwardArgs {
  static constexpr const char* name = F::name;
  TensorView<T> dx;
  TensorView<T> dtarget;
  TensorView<const Compute<T>> dy;
  TensorView<const T> x;
  TensorView<const T> target;
  TensorView<const Compute<T>> weight;
  double scale;
  [[nodiscard]] Cost cost() const {
    return {.flops = 4 * x.numel(),
            .special = F::special * x.numel(),
            .bytes_read = x.bytes() + target.bytes(),
            .bytes_written = x.bytes()};
  }
};

// --- functors: the loss of one element, its derivatives by x and by the target

struct MseLoss {
  static constexpr const char* name = "mse_loss";
  static constexpr int special = 0;
  template <class V>
  GABLE_HD static V fwd(V x, V t, V) {
    return (x - t) * (x - t);
  }
  template <class V>
  GABLE_HD static V dx(V x, V t, V) {
    return V(2) * (x - t);
  }
  template <class V>
  GABLE_HD static V dtarget(V x, V t, V) {
    return V(-2) * (x - t);
  }
};

struct L1Loss {
  static constexpr const char* name = "l1_loss";
  static constexpr int special = 0;
  template <class V>
  GABLE_HD static V fwd(V x, V t, V) {
    return math::abs(x - t);
  }
  template <class V>
  GABLE_HD static V dx(V x, V t, V) {
    const V d = x - t;
    return d > V(0) ? V(1) : d < V(0) ? V(-1) : d * V(0);
  }
  template <class V>
  GABLE_HD static V dtarget(V x, V t, V w) {
    return -dx(x, t, w);
  }
};

/// (1 - t) x + (1 + (w - 1) t) log(1 + exp(-x)), without overflow; w weighs the positives.
struct BceLoss {
  static constexpr const char* name = "binary_cross_entropy_with_logits";
  static constexpr int special = 2;
  template <class V>
  GABLE_HD static V softplus_neg(V x) {  // log(1 + exp(-x))
    const V tail = math::log1p(math::exp(-math::abs(x)));
    return x < V(0) ? tail - x : tail;
  }
  template <class V>
  GABLE_HD static V fwd(V x, V t, V w) {
    return (V(1) - t) * x + (V(1) + (w - V(1)) * t) * softplus_neg(x);
  }
  template <class V>
  GABLE_HD static V dx(V x, V t, V w) {
    return (V(1) - t) - (V(1) + (w - V(1)) * t) * math::sigmoid(-x);
  }
  template <class V>
  GABLE_HD static V dtarget(V x, V, V w) {
    return (w - V(1)) * softplus_neg(x) - x;
  }
};

// --- operators

/// Options of cross_entropy().
struct CrossEntropyOptions {
  double label_smoothing = 0;    ///< in [0, 1]: weight of the uniform distribution
  int64_t ignore_index = -100;   ///< targets of this value do not count
  AnyTensor class_weights = {};  ///< (C), float; undefined: 1
  Reduction reduction = Reduction::mean;
};

template <FloatElement T>
struct CrossEntropyOp : OpBase {
  static constexpr const char* name = "cross_entropy";
  using C = Compute<T>;
  CrossEntropyOptions options;
  Saved<T> saved_x;
  Saved<int64_t> saved_targets;
  Tensor<C> weight;
  Tensor<double> lse;
  Tensor<double> scale;

  explicit CrossEntropyOp(CrossEntropyOptions o) : options(std::move(o)) {}

  Tensor<C> forward(const Tensor<T>& x, const Tensor<int64_t>& targets) {
    const Shape positions = check_inputs(x, targets);
    const bool none = options.reduction == Reduction::none;
    Tensor<C> loss(none ? positions : Shape{}, x.device());
    lse = Tensor<double>(positions, x.device());
    scale = Tensor<double>(Shape{}, x.device());
    launch(x.device(),
           CrossEntropyArgs<T>{loss.write_view(name), lse.write_view(name), scale.write_view(name),
                               x.view(), targets.view(), weight_view(), options.ignore_index,
                               options.label_smoothing, options.reduction});
    if (recording()) {
      saved_x.save(x);
      saved_targets.save(targets);
    }
    return loss;
  }

  Grads<2> backward(const Tensor<C>& dy) {
    const Tensor<T>& x = saved_x.get(name);
    const Tensor<int64_t>& targets = saved_targets.get(name);
    Tensor<T> dx = empty_like(x);
    launch(x.device(), CrossEntropyBackwardArgs<T>{
                           dx.write_view(name), dy.expand(lse.shape()).view(), lse.view(),
                           scale.view(), x.view(), targets.view(), weight_view(),
                           options.ignore_index, options.label_smoothing});
    return {dx.any(), AnyTensor()};
  }

 private:
  [[nodiscard]] TensorView<const C> weight_view() const {
    return weight.defined() ? weight.view() : TensorView<const C>{};
  }

  // Returns (N, d...).
  Shape check_inputs(const Tensor<T>& x, const Tensor<int64_t>& targets) {
    check(x.rank() >= 2, name, "expected logits of shape (N, C, ...), got ", x.shape());
    Shape positions = x.shape();
    positions.erase(1);
    const int64_t classes = x.size(1);
    check(targets.shape() == positions, name, "expected targets of shape ", positions,
          " for logits of shape ", x.shape(), ", got ", targets.shape());
    detail::check_same_device(name, x, targets);
    check<TypeError>(options.label_smoothing >= 0 && options.label_smoothing <= 1, name,
                     "expected label_smoothing in [0, 1], got ", options.label_smoothing);
    if (options.class_weights.defined()) {
      const AnyTensor& w = options.class_weights;
      check(w.shape() == Shape{classes}, name, "expected class weights of shape ", Shape{classes},
            ", got ", w.shape());
      check<TypeError>(is_floating_point(w.dtype()), name,
                       "expected floating-point class weights, got ", w.dtype());
      detail::check_same_device(name, x, w);
      weight = materialize(Tensor<C>(w.to(dtype_of<C>)));
    }
    detail::check_indices(name, targets, classes, options.ignore_index);
    return positions;
  }
};

template <class F, FloatElement T>
struct PairLossOp : OpBase {
  static constexpr const char* name = F::name;
  using C = Compute<T>;
  Reduction reduction;
  Tensor<C> weight;  ///< undefined: 1
  Saved<T> saved_x;
  Saved<T> saved_target;

  explicit PairLossOp(Reduction r, const AnyTensor& w = {}) : reduction(r) {
    if (!w.defined()) return;
    check<TypeError>(is_floating_point(w.dtype()), name,
                     "expected a floating-point pos_weight, got ", w.dtype());
    weight = Tensor<C>(w.to(dtype_of<C>));
  }

  Tensor<C> forward(const Tensor<T>& x, const Tensor<T>& target) {
    check(x.shape() == target.shape(), name, "expected a target of the input's shape ", x.shape(),
          ", got ", target.shape());
    detail::check_same_device(name, x, target);
    if (weight.defined()) {
      detail::check_same_device(name, x, weight);
      weight = Tensor<C>(weight.any().with(weight.layout().expand(x.shape(), name)));
    }
    const bool none = reduction == Reduction::none;
    Tensor<C> loss(
        AnyTensor::empty(none ? x.layout().like() : Layout(Shape{}), dtype_of<C>, x.device()));
    launch(x.device(), PairLossArgs<F, T>{loss.write_view(name), x.view(), target.view(),
                                          weight_view(), reduction});
    if (recording()) {
      saved_x.save(x);
      saved_target.save(target);
    }
    return loss;
  }

  Grads<2> backward(const Tensor<C>& dy) {
    const Tensor<T>& x = saved_x.get(name);
    const Tensor<T>& target = saved_target.get(name);
    const auto count = static_cast<double>(x.numel());
    PairLossBackwardArgs<F, T> args{{},
                                    {},
                                    dy.expand(x.shape()).view(),
                                    x.view(),
                                    target.view(),
                                    weight_view(),
                                    reduction == Reduction::mean && count > 0 ? 1 / count : 1};
    Tensor<T> dx;
    Tensor<T> dtarget;
    if (needs(0)) args.dx = (dx = empty_like(x)).write_view(name);
    if (needs(1)) args.dtarget = (dtarget = empty_like(x)).write_view(name);
    launch(x.device(), args);
    return {dx.any(), dtarget.any()};
  }

 private:
  [[nodiscard]] TensorView<const C> weight_view() const {
    return weight.defined() ? weight.view() : TensorView<const C>{};
  }
};

// --- public functions

/// Softmax cross-entropy of logits (N, C) or (N, C, d...) and class labels (N) or (N, d...), one
/// pass forward and one backward. Throws ShapeError, TypeError, and IndexError that names the
/// position for a label outside [0, C) that is not ignore_index; nothing is written then. If all
/// labels are ignored, the loss is 0 with gradient 0.
template <FloatTensorLike X>
auto cross_entropy(const X& logits, const Tensor<int64_t>& targets,
                   const CrossEntropyOptions& options = {}) {
  return apply(CrossEntropyOp<element_of<X>>(options), logits, targets);
}

/// (x - target)^2. Throws ShapeError unless the shapes are equal.
template <FloatTensorLike X, FloatTensorLike Y>
requires std::same_as<element_of<X>, element_of<Y>>
auto mse_loss(const X& x, const Y& target, Reduction reduction = Reduction::mean) {
  return apply(PairLossOp<MseLoss, element_of<X>>(reduction), x, target);
}
/// |x - target|, whose gradient at 0 is 0. Throws ShapeError unless the shapes are equal.
template <FloatTensorLike X, FloatTensorLike Y>
requires std::same_as<element_of<X>, element_of<Y>>
auto l1_loss(const X& x, const Y& target, Reduction reduction = Reduction::mean) {
  return apply(PairLossOp<L1Loss, element_of<X>>(reduction), x, target);
}
/// -(pos_weight target log(sigmoid(x)) + (1 - target) log(1 - sigmoid(x))), without overflow.
/// pos_weight is 1 if undefined, and broadcasts to x. Throws ShapeError unless x and target have
/// one shape.
template <FloatTensorLike X, FloatTensorLike Y>
requires std::same_as<element_of<X>, element_of<Y>>
auto binary_cross_entropy_with_logits(const X& x, const Y& target,
                                      Reduction reduction = Reduction::mean,
                                      const AnyTensor& pos_weight = {}) {
  return apply(PairLossOp<BceLoss, element_of<X>>(reduction, pos_weight), x, target);
}

// Kernels of this file, for kernel_list.hpp.
template <class T>
using MseLossArgs = PairLossArgs<MseLoss, T>;
template <class T>
using MseLossBackwardArgs = PairLossBackwardArgs<MseLoss, T>;
template <class T>
using L1LossArgs = PairLossArgs<L1Loss, T>;
template <class T>
using L1LossBackwardArgs = PairLossBackwardArgs<L1Loss, T>;
template <class T>
using BceLossArgs = PairLossArgs<BceLoss, T>;
template <class T>
using BceLossBackwardArgs = PairLossBackwardArgs<BceLoss, T>;

}  // namespace gable
