// SPDX-License-Identifier: Apache-2.0
// GradScaler: dynamic loss scaling for half-precision training (Micikevicius et al., "Mixed
// precision training", 2018), with its state on the device, so that no step waits for it.
//
//   amp::GradScaler scaler({.device = device});
//   scaler.scale(loss).backward();
//   scaler.step(sgd);
//   scaler.update();
//   sgd.zero_grad();
#pragma once

#include <cstdint>

#include "gable/autograd/apply.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/optim/optimizer.hpp"
#include "gable/tensor/state_dict.hpp"

namespace gable::amp {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;        ///< at least 1
  double backoff_factor = 0.5;     ///< in (0, 1)
  int64_t growth_interval = 2000;  ///< steps without infinities before the scale grows
  Device device = kCpu;            ///< of the parameters
};

/// Multiplies the loss, divides the gradients again, skips updates whose gradients are not finite,
/// and adapts the scale. One scaler serves one optimizer. Functions that return numbers wait for
/// the device; the others only queue work.
class GradScaler {
 public:
  /// Throws TypeError for options out of range.
  explicit GradScaler(const GradScalerOptions& options = {});

  /// loss * scale, recorded. The loss is on the scaler's device.
  template <FloatElement T>
  [[nodiscard]] Variable<T> scale(const Variable<T>& loss) const {
    return mul(loss, Variable<T>(cast<T>(scale_)));
  }
  /// Divides the gradients of the optimizer's parameters by the scale, so that they can be looked
  /// at or clipped before step(). Throws Error if called twice before update().
  void unscale_(const optim::Optimizer& optimizer);
  /// unscale_() unless it was called, then the optimizer's step with gradients times `factor` (one
  /// element, may be undefined: a clipping factor), which changes nothing if a gradient is not
  /// finite. Throws Error if called twice before update().
  void step(optim::Optimizer& optimizer, const Tensor<float>& factor = {});
  /// Adapts the scale to what the step found. Throws Error without a step() before.
  void update();

  /// Whether the gradients of the step since the last update() were not finite.
  [[nodiscard]] bool found_inf() const { return found_inf_.item() != 0; }
  [[nodiscard]] double current_scale() const { return scale_.item(); }
  /// Steps so far that changed parameters; what a schedule by real steps goes by.
  [[nodiscard]] int64_t steps_taken() const { return taken_.item(); }
  [[nodiscard]] int64_t steps_skipped() const { return skipped_.item(); }
  [[nodiscard]] const GradScalerOptions& options() const { return options_; }

  /// Handles of "scale", "streak", "taken", "skipped".
  [[nodiscard]] StateDict state_dict() const;
  /// Copies a saved state in. Throws Error for other names, shapes or dtypes; then nothing is
  /// changed.
  void load_state_dict(const StateDict& dict);

 private:
  enum class Stage : uint8_t { ready, unscaled, stepped };

  GradScalerOptions options_;
  Tensor<float> scale_;
  Tensor<float> found_inf_;
  Tensor<int64_t> streak_;
  Tensor<int64_t> taken_;
  Tensor<int64_t> skipped_;
  Stage stage_ = Stage::ready;
};

}  // namespace gable::amp
