// SPDX-License-Identifier: Apache-2.0
// Embedding: rows of a table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gable/nn/init.hpp"
#include "gable/nn/module.hpp"
#include "gable/ops/index.hpp"

namespace gable::nn {

/// int64 indices of any shape to (that shape, size). Unit normal at first, as in PyTorch; the row
/// `padding_index` is 0 and stays so.
template <FloatElement T>
class Embedding : public Module<T> {
 public:
  Embedding(int64_t rows, int64_t size, std::optional<int64_t> padding = {},
            Generator& g = default_generator())
      : weight(zeros<Compute<T>>({rows, size})), padding_index(padding) {
    init::normal_(weight, 0, 1, g);
    if (padding) {
      weight.master().select(0, *padding).zero_();
      weight.any().refresh();
    }
    this->register_parameter("weight", weight);
  }
  using Module<T>::forward;
  Variable<T> forward(const Tensor<int64_t>& indices) {
    return embedding(weight, indices, padding_index);
  }
  Variable<T> operator()(const Tensor<int64_t>& indices) { return forward(indices); }
  [[nodiscard]] std::string describe() const override {
    return concat("Embedding(", weight.size(0), ", ", weight.size(1), ")");
  }

  Parameter<T> weight;  ///< (rows, size)
  std::optional<int64_t> padding_index;
};
GABLE_MODULE(extern, Embedding)

}  // namespace gable::nn
