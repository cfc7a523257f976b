// SPDX-License-Identifier: Apache-2.0
// Gradient clipping.
#pragma once

#include <vector>

#include "gable/autograd/variable.hpp"

namespace gable::optim {

struct ClipResult {
  double norm = 0;       ///< of all gradients together, before clipping
  bool finite = true;    ///< false: a gradient holds inf or NaN, and nothing was changed
  bool clipped = false;  ///< gradients were scaled down
};

/// Euclidean norm of all gradients together (parameters without one count as zero).
[[nodiscard]] double grad_norm(const std::vector<AnyParameter>& parameters);
/// Scales all gradients by max_norm / (norm + 1e-6) if that is below 1. A norm that is not finite
/// leaves every gradient as it is, and the result says so. Throws TypeError unless max_norm > 0.
ClipResult clip_grad_norm(const std::vector<AnyParameter>& parameters, double max_norm);
/// Clipping without a wait for the device: what Optimizer::step's control takes.
///     const optim::DeviceClip clip = optim::clip_factor(sgd.parameters(), 1.0);
///     sgd.step(1, {.scale = clip.factor, .found_inf = clip.found_inf});
struct DeviceClip {
  Tensor<double> norm;      ///< of all gradients together, times `scale`
  Tensor<float> factor;     ///< min(1, max_norm / (norm + 1e-6)) times `scale`
  Tensor<float> found_inf;  ///< 1 if the norm is not finite, else 0
};
/// `scale` (one element, may be undefined) is what gradients are to be multiplied by anyway, such
/// as 1 / loss scale. Gradients stay as they are. Throws TypeError unless max_norm > 0.
[[nodiscard]] DeviceClip clip_factor(const std::vector<AnyParameter>& parameters, double max_norm,
                                     const Tensor<float>& scale = {});
/// Clamps every gradient element to [-limit, limit]; NaN stays. Throws TypeError unless limit > 0.
void clip_grad_value(const std::vector<AnyParameter>& parameters, double limit);

}  // namespace gable::optim
