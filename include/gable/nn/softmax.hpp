// SPDX-License-Identifier: Apache-2.0
// Softmax and its logarithm as modules.
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/module.hpp"
#include "gable/ops/softmax.hpp"

namespace gable::nn {

template <FloatElement T>
class Softmax : public Module<T> {
 public:
  explicit Softmax(int64_t along = -1) : dim(along) {}
  Variable<T> forward(const Variable<T>& x) override { return softmax(x, dim); }
  [[nodiscard]] std::string describe() const override { return concat("Softmax(", dim, ")"); }

  int64_t dim;
};

template <FloatElement T>
class LogSoftmax : public Module<T> {
 public:
  explicit LogSoftmax(int64_t along = -1) : dim(along) {}
  Variable<T> forward(const Variable<T>& x) override { return log_softmax(x, dim); }
  [[nodiscard]] std::string describe() const override { return concat("LogSoftmax(", dim, ")"); }

  int64_t dim;
};
GABLE_MODULE(extern, Softmax)
GABLE_MODULE(extern, LogSoftmax)

}  // namespace gable::nn
