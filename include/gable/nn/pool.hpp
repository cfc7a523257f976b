// SPDX-License-Identifier: Apache-2.0
// Pooling and flattening layers.
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/module.hpp"
#include "gable/ops/pool.hpp"
#include "gable/ops/view.hpp"

namespace gable::nn {

template <FloatElement T>
class MaxPool2d : public Module<T> {
 public:
  explicit MaxPool2d(Size2d size, MaxPoolOptions o = {}) : kernel(size), options(o) {}
  Variable<T> forward(const Variable<T>& x) override { return max_pool2d(x, kernel, options); }
  [[nodiscard]] std::string describe() const override {
    return concat("MaxPool2d(", kernel.h, "x", kernel.w, ")");
  }

  Size2d kernel;
  MaxPoolOptions options;
};

template <FloatElement T>
class AvgPool2d : public Module<T> {
 public:
  explicit AvgPool2d(Size2d size, AvgPoolOptions o = {}) : kernel(size), options(o) {}
  Variable<T> forward(const Variable<T>& x) override { return avg_pool2d(x, kernel, options); }
  [[nodiscard]] std::string describe() const override {
    return concat("AvgPool2d(", kernel.h, "x", kernel.w, ")");
  }

  Size2d kernel;
  AvgPoolOptions options;
};

/// To images of `size`; 1 is global average pooling.
template <FloatElement T>
class AdaptiveAvgPool2d : public Module<T> {
 public:
  explicit AdaptiveAvgPool2d(Size2d out) : size(out) {}
  Variable<T> forward(const Variable<T>& x) override { return adaptive_avg_pool2d(x, size); }
  [[nodiscard]] std::string describe() const override {
    return concat("AdaptiveAvgPool2d(", size.h, "x", size.w, ")");
  }

  Size2d size;
};

/// Merges dimensions first..last, in logical (row-major) order.
template <FloatElement T>
class Flatten : public Module<T> {
 public:
  explicit Flatten(int64_t first_dim = 1, int64_t last_dim = -1)
      : first(first_dim), last(last_dim) {}
  Variable<T> forward(const Variable<T>& x) override { return flatten(x, first, last); }
  [[nodiscard]] std::string describe() const override {
    return concat("Flatten(", first, ", ", last, ")");
  }

  int64_t first;
  int64_t last;
};
GABLE_MODULE(extern, MaxPool2d)
GABLE_MODULE(extern, AvgPool2d)
GABLE_MODULE(extern, AdaptiveAvgPool2d)
GABLE_MODULE(extern, Flatten)

}  // namespace gable::nn
