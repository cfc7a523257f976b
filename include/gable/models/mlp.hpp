// SPDX-License-Identifier: Apache-2.0
// MLP: linear layers with activations between them.
#pragma once

#include <cstdint>
#include <vector>

#include "gable/nn/activation.hpp"
#include "gable/nn/linear.hpp"
#include "gable/nn/sequential.hpp"
#include "gable/ops/view.hpp"

namespace gable::models {

struct MLPOptions {
  double dropout = 0;  ///< after each activation
  bool bias = true;
};

/// Linear, ReLU (and dropout), ..., Linear. Inputs (N, ...) are flattened to (N, sizes[0]).
///     models::MLP<float> net({784, 256, 10});
template <FloatElement T>
class MLP : public nn::Sequential<T> {
 public:
  /// `sizes`: inputs, hidden units, outputs. Throws TypeError for fewer than two.
  explicit MLP(const std::vector<int64_t>& sizes, MLPOptions o = {},
               Generator& g = default_generator()) {
    check<TypeError>(sizes.size() >= 2, "mlp", "expected at least two sizes, got ", sizes.size());
    for (size_t i = 1; i < sizes.size(); ++i) {
      this->template add<nn::Linear>(sizes[i - 1], sizes[i], o.bias, g);
      if (i + 1 == sizes.size()) break;
      this->template add<nn::ReLU>();
      if (o.dropout > 0) this->template add<nn::Dropout>(o.dropout);
    }
  }
  Variable<T> forward(const Variable<T>& x) override {
    return nn::Sequential<T>::forward(x.rank() > 2 ? flatten(x, 1) : x);
  }
  [[nodiscard]] std::string describe() const override { return "MLP"; }
};
GABLE_MODULE(extern, MLP)

}  // namespace gable::models
