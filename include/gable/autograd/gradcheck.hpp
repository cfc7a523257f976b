// SPDX-License-Identifier: Apache-2.0
// gradcheck: compares a function's backward with central differences in double precision.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gable/autograd/variable.hpp"

namespace gable {

struct GradcheckOptions {
  double step = 1e-6;      ///< of the central difference
  double absolute = 1e-5;  ///< |analytic - numeric| <= absolute + relative * |numeric|
  double relative = 1e-3;
};

struct GradcheckResult {
  bool ok = true;
  double worst = 0;     ///< largest |analytic - numeric|
  std::string message;  ///< names input, element and both values of the worst failure
  explicit operator bool() const { return ok; }
};

/// Checks d f / d inputs for every element of every input, with a random (fixed-seed) weighting of
/// f's output. `f` must be deterministic and smooth within `step` of the inputs. Inputs may be
/// strided; they are left unchanged. Throws what f throws.
[[nodiscard]] GradcheckResult gradcheck(
    const std::function<Variable<double>(const std::vector<Variable<double>>&)>& f,
    const std::vector<Tensor<double>>& inputs, const GradcheckOptions& options = {});

}  // namespace gable
