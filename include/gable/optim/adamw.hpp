// SPDX-License-Identifier: Apache-2.0
// AdamW, and Adam as one of its settings, with PyTorch's formulas.
#pragma once

#include <string>
#include <vector>

#include "gable/optim/optimizer.hpp"

namespace gable::optim {

struct AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  /// Weight decay shrinks the parameter itself; false adds it to the gradient, which is Adam.
  bool decoupled = true;
};

///     optim::AdamW adam(model.parameters(), {.lr = 1e-3, .weight_decay = 0.05});
class AdamW final : public Optimizer {
 public:
  /// Throws TypeError for settings out of range.
  explicit AdamW(const std::vector<AnyParameter>& parameters, const AdamWOptions& options = {});
  explicit AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups);

 private:
  void update(const std::vector<Update>& updates, double gradient_scale,
              const UpdateControl& control) override;
  [[nodiscard]] std::vector<std::string> state_names(size_t group) const override;
  [[nodiscard]] const char* name() const override { return "adamw"; }

  std::vector<AdamWOptions> options_;
};

}  // namespace gable::optim
