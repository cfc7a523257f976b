// SPDX-License-Identifier: Apache-2.0
// Dynamic loss scaling.
#include "gable/amp/grad_scaler.hpp"

#include <cmath>
#include <vector>

#include "gable/ops/optimizer.hpp"

namespace gable::amp {

GradScaler::GradScaler(const GradScalerOptions& options) : options_(options) {
  constexpr const char* kName = "grad_scaler";
  const auto scale = static_cast<float>(options.init_scale);
  check<TypeError>(std::isfinite(scale) && scale > 0, kName,
                   "expected an init_scale > 0 that float holds, got ", options.init_scale);
  check<TypeError>(std::isfinite(options.growth_factor) && options.growth_factor >= 1, kName,
                   "expected a finite growth_factor >= 1, got ", options.growth_factor);
  check<TypeError>(options.backoff_factor > 0 && options.backoff_factor < 1, kName,
                   "expected a backoff_factor in (0, 1), got ", options.backoff_factor);
  check<TypeError>(options.growth_interval >= 1, kName, "expected a growth_interval >= 1, got ",
                   options.growth_interval);
  scale_ = scalar(scale, options.device);
  found_inf_ = scalar(0.0F, options.device);
  streak_ = scalar(int64_t{0}, options.device);
  taken_ = scalar(int64_t{0}, options.device);
  skipped_ = scalar(int64_t{0}, options.device);
}

void GradScaler::unscale_(const optim::Optimizer& optimizer) {
  check<Error>(stage_ == Stage::ready, "unscale_", "expected update() after the last ",
               stage_ == Stage::unscaled ? "unscale_()" : "step()", ", got another unscale_()");
  std::vector<UnscaleArgs<float>> floats;
  std::vector<UnscaleArgs<double>> doubles;
  for (const AnyParameter& p : optimizer.parameters()) {
    const AnyTensor& g = p.gradient();
    if (g.defined()) detail::check_same_device("unscale_", scale_, g);
  }
  const TensorView<float> found = found_inf_.write_view("unscale_");
  for (const AnyParameter& p : optimizer.parameters()) {
    const AnyTensor& g = p.gradient();
    if (!g.defined()) continue;
    if (g.dtype() == DType::float64)
      doubles.push_back({g.as<double>().write_view("unscale_"), scale_.view(), found});
    else
      floats.push_back({g.as<float>().write_view("unscale_"), scale_.view(), found});
  }
  if (!floats.empty()) launch(options_.device, ManyArgs<UnscaleArgs<float>>{floats});
  if (!doubles.empty()) launch(options_.device, ManyArgs<UnscaleArgs<double>>{doubles});
  stage_ = Stage::unscaled;
}

void GradScaler::step(optim::Optimizer& optimizer, const Tensor<float>& factor) {
  check<Error>(stage_ != Stage::stepped, "grad_scaler.step",
               "expected update() after the last step(), got another step()");
  if (stage_ == Stage::ready) unscale_(optimizer);
  optimizer.step(1, {.scale = factor, .found_inf = found_inf_, .skipped = skipped_});
  stage_ = Stage::stepped;
}

void GradScaler::update() {
  check<Error>(stage_ == Stage::stepped, "grad_scaler.update",
               "expected a step() before update(), got none");
  launch(options_.device,
         ScalerUpdateArgs{scale_.write_view("update"), found_inf_.write_view("update"),
                          streak_.write_view("update"), taken_.write_view("update"),
                          skipped_.write_view("update"), options_.growth_factor,
                          options_.backoff_factor, options_.growth_interval});
  stage_ = Stage::ready;
}

StateDict GradScaler::state_dict() const {
  StateDict dict;
  dict.add("scale", scale_);
  dict.add("streak", streak_);
  dict.add("taken", taken_);
  dict.add("skipped", skipped_);
  return dict;
}

void GradScaler::load_state_dict(const StateDict& dict) {
  const StateDict own = state_dict();
  std::string problems;
  for (const auto& [name, target] : own) {
    const AnyTensor* source = dict.find(name);
    if (source == nullptr)
      problems += concat(" ", name, " missing;");
    else if (!source->defined() || source->shape() != target.shape() ||
             source->dtype() != target.dtype())
      problems +=
          concat(" ", name, " of shape ", source->shape(), " and dtype ", source->dtype(), ";");
  }
  check<Error>(problems.empty() && dict.size() == own.size(), "grad_scaler.load_state_dict",
               "expected scale, streak, taken and skipped of one element, got ", dict.size(),
               " entries;", problems);
  for (const auto& [name, target] : own) target.copy_(*dict.find(name), "load_state_dict");
}

}  // namespace gable::amp
