// SPDX-License-Identifier: Apache-2.0
// Gradient clipping.
#include "gable/optim/clip.hpp"

#include <cmath>
#include <type_traits>

#include "gable/ops/elementwise.hpp"
#include "gable/ops/optimizer.hpp"

namespace gable::optim {

namespace {

// Calls f with each gradient as a Tensor<float> or Tensor<double>.
template <class F>
void for_each_gradient(const std::vector<AnyParameter>& parameters, F&& f) {
  for (const AnyParameter& p : parameters) {
    const AnyTensor& g = p.gradient();
    if (!g.defined()) continue;
    if (g.dtype() == DType::float64)
      f(g.as<double>());
    else
      f(g.as<float>());
  }
}

// Sum of squares of each gradient, on their device.
Tensor<double> square_sums(const std::vector<AnyParameter>& parameters, Where where) {
  int64_t count = 0;
  Device device = kCpu;
  for_each_gradient(parameters, [&](const auto& g) {
    if (count++ == 0) device = g.device();
  });
  const Tensor<double> sums = empty<double>({count}, {.device = device});
  std::vector<SquareSumArgs<float>> floats;
  std::vector<SquareSumArgs<double>> doubles;
  int64_t i = 0;
  for_each_gradient(parameters, [&]<class T>(const Tensor<T>& g) {
    detail::check_same_device(where, sums, g);
    const SquareSumArgs<T> call{g.view(), sums[i++].write_view(where)};
    if constexpr (std::is_same_v<T, float>)
      floats.push_back(call);
    else
      doubles.push_back(call);
  });
  if (!floats.empty()) launch(device, ManyArgs<SquareSumArgs<float>>{floats});
  if (!doubles.empty()) launch(device, ManyArgs<SquareSumArgs<double>>{doubles});
  return sums;
}

}  // namespace

double grad_norm(const std::vector<AnyParameter>& parameters) {
  double total = 0;
  for (double s : square_sums(parameters, "grad_norm").to_vector()) total += s;
  return std::sqrt(total);
}

DeviceClip clip_factor(const std::vector<AnyParameter>& parameters, double max_norm,
                       const Tensor<float>& scale) {
  check<TypeError>(max_norm > 0, "clip_factor", "expected max_norm > 0, got ", max_norm);
  const Tensor<double> sums = square_sums(parameters, "clip_factor");
  const Device device = sums.device();
  if (scale.defined()) {
    check(scale.numel() == 1, "clip_factor", "expected one element of scale, got shape ",
          scale.shape());
    detail::check_same_device("clip_factor", sums, scale);
  }
  DeviceClip clip{empty<double>({}, {.device = device}), empty<float>({}, {.device = device}),
                  empty<float>({}, {.device = device})};
  launch(device,
         ClipFactorArgs{sums.view(), scale.defined() ? scale.view() : TensorView<const float>{},
                        clip.norm.write_view("clip_factor"), clip.factor.write_view("clip_factor"),
                        clip.found_inf.write_view("clip_factor"), max_norm});
  return clip;
}

ClipResult clip_grad_norm(const std::vector<AnyParameter>& parameters, double max_norm) {
  check<TypeError>(max_norm > 0, "clip_grad_norm", "expected max_norm > 0, got ", max_norm);
  ClipResult result{.norm = grad_norm(parameters)};
  result.finite = std::isfinite(result.norm);
  const double factor = max_norm / (result.norm + 1e-6);
  result.clipped = result.finite && factor < 1;
  if (result.clipped)
    for_each_gradient(parameters, [&]<class T>(const Tensor<T>& g) {
      mul_(g, scalar<T>(static_cast<T>(factor), g.device()));
    });
  return result;
}

void clip_grad_value(const std::vector<AnyParameter>& parameters, double limit) {
  check<TypeError>(limit > 0, "clip_grad_value", "expected a limit > 0, got ", limit);
  for_each_gradient(parameters, [&](const auto& g) { clamp_(g, -limit, limit); });
}

}  // namespace gable::optim
