// SPDX-License-Identifier: Apache-2.0
// Stochastic gradient descent with momentum, with PyTorch's formulas.
#pragma once

#include <string>
#include <vector>

#include "gable/optim/optimizer.hpp"

namespace gable::optim {

struct SGDOptions {
  double lr = 0.1;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  ///< added to the gradient, times the parameter
  bool nesterov = false;    ///< needs momentum > 0 and dampening 0
};

///     optim::SGD sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
class SGD final : public Optimizer {
 public:
  /// Throws TypeError for settings out of range.
  explicit SGD(const std::vector<AnyParameter>& parameters, const SGDOptions& options = {});
  explicit SGD(const std::vector<ParamGroup<SGDOptions>>& groups);

 private:
  void update(const std::vector<Update>& updates, double gradient_scale,
              const UpdateControl& control) override;
  [[nodiscard]] std::vector<std::string> state_names(size_t group) const override;
  [[nodiscard]] const char* name() const override { return "sgd"; }

  std::vector<SGDOptions> options_;
};

}  // namespace gable::optim
