// SPDX-License-Identifier: Apache-2.0
// Inverted dropout.
#pragma once

#include "gable/ops/op.hpp"
#include "gable/tensor/random.hpp"

namespace gable {

/// out = mask ? scale * x : 0; equal shapes, any strides.
template <class T>
struct DropoutArgs {
  static constexpr const char* name = "dropout";
  TensorView<T> out;
  TensorView<const T> x;
  TensorView<const bool> mask;
  double scale;
  [[nodiscard]] Cost cost() const {
    return {
        .flops = out.numel(), .bytes_read = x.bytes() + mask.bytes(), .bytes_written = out.bytes()};
  }
};

template <FloatElement T>
struct DropoutOp : OpBase {
  static constexpr const char* name = "dropout";
  double p;
  Generator* generator;
  Tensor<bool> mask;

  DropoutOp(double probability, Generator& g) : p(probability), generator(&g) {}

  Tensor<T> forward(const Tensor<T>& x) {
    // Row-major draws, whatever x's strides: the mask depends on seed, position and shape only.
    mask = bernoulli<bool>(1 - p, x.shape(), {.device = x.device()}, *generator);
    return scaled(x);
  }
  Grads<1> backward(const Tensor<T>& dy) { return {scaled(dy).any()}; }

 private:
  Tensor<T> scaled(const Tensor<T>& x) const {
    Tensor<T> out = empty_like(x);
    const double scale = p < 1 ? 1 / (1 - p) : 0;
    launch(x.device(), DropoutArgs<T>{out.write_view(name), x.view(), mask.view(), scale});
    return out;
  }
};

/// Zeroes each element with probability `p` and scales the others by 1 / (1 - p) if `training`;
/// else, or for p = 0, returns x itself. One seed gives the same mask on every device and for any
/// thread count and memory format. A dropped NaN becomes 0. Throws TypeError unless 0 <= p <= 1.
template <FloatTensorLike X>
X dropout(const X& x, double p = 0.5, bool training = true, Generator& g = default_generator()) {
  check<TypeError>(p >= 0 && p <= 1, "dropout", "expected a probability in [0, 1], got ", p);
  check(x.defined(), "dropout", "expected a defined tensor, got an undefined one");
  if (!training || p == 0) return x;
  return apply(DropoutOp<element_of<X>>(p, g), x);
}

}  // namespace gable
