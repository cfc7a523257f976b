// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules.
#include "gable/optim/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gable/core/error.hpp"

namespace gable::optim {

namespace {

void check_step(Where where, int64_t step) {
  check<TypeError>(step >= 0, where, "expected a step >= 0, got ", step);
}

// From `start` at fraction 0 to `end` at fraction 1.
double anneal_between(Anneal kind, double start, double end, double fraction) {
  if (kind == Anneal::linear) return start + (end - start) * fraction;
  return end + (start - end) / 2 * (1 + std::cos(std::numbers::pi * fraction));
}

}  // namespace

double StepDecay::operator()(int64_t step) const {
  check_step("step_decay", step);
  check<TypeError>(step_size >= 1, "step_decay", "expected step_size >= 1, got ", step_size);
  return lr * std::pow(gamma, static_cast<double>(step / step_size));
}

double CosineWarmup::operator()(int64_t step) const {
  check_step("cosine_warmup", step);
  check<TypeError>(warmup >= 0 && warmup < total_steps, "cosine_warmup",
                   "expected 0 <= warmup < total_steps, got warmup ", warmup, " and total_steps ",
                   total_steps);
  if (step < warmup)
    return lr * anneal_between(Anneal::linear, warmup_start, 1,
                               static_cast<double>(step) / static_cast<double>(warmup));
  if (step >= total_steps) return min_lr;
  return anneal_between(
      Anneal::cosine, lr, min_lr,
      static_cast<double>(step - warmup) / static_cast<double>(total_steps - warmup));
}

double OneCycle::operator()(int64_t step) const {
  check_step("one_cycle", step);
  check<TypeError>(total_steps >= 1, "one_cycle", "expected total_steps >= 1, got ", total_steps);
  check<TypeError>(pct_start >= 0 && pct_start <= 1, "one_cycle",
                   "expected 0 <= pct_start <= 1, got ", pct_start);
  const double first = max_lr / div_factor;
  const double last = first / final_div_factor;
  const auto end = static_cast<double>(total_steps - 1);
  const double peak = pct_start * static_cast<double>(total_steps) - 1;
  const double at = std::min(static_cast<double>(step), end);
  if (peak > 0 && at <= peak) return anneal_between(anneal, first, max_lr, at / peak);
  if (at == end) return end == 0 ? max_lr : last;
  return anneal_between(anneal, max_lr, last, (at - peak) / (end - peak));
}

}  // namespace gable::optim
