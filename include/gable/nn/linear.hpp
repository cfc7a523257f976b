// SPDX-License-Identifier: Apache-2.0
// Linear: y = x weight^T + bias.
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/init.hpp"
#include "gable/nn/module.hpp"
#include "gable/ops/matmul.hpp"

namespace gable::nn {

/// (..., in) to (..., out). Initialised as in PyTorch: weight and bias uniform in
/// +-1 / sqrt(in).
template <FloatElement T>
class Linear : public Module<T> {
 public:
  Linear(int64_t in, int64_t out, bool with_bias = true, Generator& g = default_generator())
      : weight(zeros<Compute<T>>({out, in})) {
    if (with_bias) bias = Parameter<T>(zeros<Compute<T>>({out}));
    init::default_(weight, bias, g);
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
  }
  Variable<T> forward(const Variable<T>& x) override { return linear(x, weight, bias); }
  [[nodiscard]] std::string describe() const override {
    return concat("Linear(", weight.size(1), ", ", weight.size(0),
                  bias.defined() ? ")" : ", no bias)");
  }

  Parameter<T> weight;  ///< (out, in)
  Parameter<T> bias;    ///< (out), or undefined
};
GABLE_MODULE(extern, Linear)

}  // namespace gable::nn
