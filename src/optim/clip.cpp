// SPDX-License-Identifier: Apache-2.0
// Gradient clipping.
#include "gable/optim/clip.hpp"

#include <cmath>

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

}  // namespace

double grad_norm(const std::vector<AnyParameter>& parameters) {
  int64_t count = 0;
  Device device = kCpu;
  for_each_gradient(parameters, [&](const auto& g) {
    device = g.device();
    ++count;
  });
  const Tensor<double> sums = empty<double>({count}, {.device = device});
  int64_t i = 0;
  for_each_gradient(parameters, [&]<class T>(const Tensor<T>& g) {
    detail::check_same_device("grad_norm", sums, g);
    launch(device, SquareSumArgs<T>{g.view(), sums[i++].write_view("grad_norm")});
  });
  double total = 0;
  for (double s : sums.to_vector()) total += s;
  return std::sqrt(total);
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
