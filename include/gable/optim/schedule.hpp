// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules: plain functions of the step number, without state, so that a resumed
// run needs nothing but the step it is at.
#pragma once

#include <cstdint>
#include <functional>

namespace gable::optim {

/// The learning rate of update number `step`, counted from 0.
///
///     const optim::Schedule schedule = optim::OneCycle{.max_lr = 0.4, .total_steps = 1000};
///     optimizer.set_lr(schedule(step));
using Schedule = std::function<double(int64_t step)>;

struct ConstantLr {
  double lr = 0.1;
  double operator()(int64_t) const { return lr; }
};

/// lr * gamma^(step / step_size), PyTorch's StepLR.
struct StepDecay {
  double lr = 0.1;
  int64_t step_size = 1;
  double gamma = 0.1;
  /// Throws TypeError for step_size < 1 or step < 0.
  double operator()(int64_t step) const;
};

/// Linear warm-up from warmup_start * lr over `warmup` steps (step `warmup` has the full lr), then
/// half a cosine down to min_lr at total_steps; PyTorch's LinearLR followed by CosineAnnealingLR.
/// Steps past the end have min_lr.
struct CosineWarmup {
  double lr = 0.1;
  int64_t total_steps = 1;
  int64_t warmup = 0;
  double warmup_start = 0;  ///< fraction of lr at step 0
  double min_lr = 0;
  /// Throws TypeError unless 0 <= warmup < total_steps and step >= 0.
  double operator()(int64_t step) const;
};

enum class Anneal : uint8_t { cosine, linear };

/// Smith and Topin's one-cycle policy, PyTorch's OneCycleLR: from max_lr / div_factor up to max_lr
/// at pct_start * total_steps - 1, then down to the first rate / final_div_factor at the last
/// step, total_steps - 1. Momentum is left alone. Steps past the end have the last rate.
struct OneCycle {
  double max_lr = 0.1;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  double div_factor = 25;
  double final_div_factor = 1e4;
  Anneal anneal = Anneal::cosine;
  /// Throws TypeError unless total_steps >= 1, 0 <= pct_start <= 1 and step >= 0.
  double operator()(int64_t step) const;
};

}  // namespace gable::optim
