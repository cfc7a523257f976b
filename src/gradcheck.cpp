// SPDX-License-Identifier: Apache-2.0
// gradcheck by central differences.
#include "gable/autograd/gradcheck.hpp"

#include <cmath>

#include "gable/tensor/random.hpp"

namespace gable {

namespace {

double weighted_sum(const Tensor<double>& y, const std::vector<double>& weights) {
  const std::vector<double> values = y.to_vector();
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += values[i] * weights[i];
  return sum;
}

}  // namespace

GradcheckResult gradcheck(
    const std::function<Variable<double>(const std::vector<Variable<double>>&)>& f,
    const std::vector<Tensor<double>>& inputs, const GradcheckOptions& options) {
  std::vector<Variable<double>> leaves;
  for (const Tensor<double>& x : inputs) leaves.emplace_back(x, true);
  const Variable<double> y = f(leaves);
  Generator generator(20240607);
  const Tensor<double> weights = rand<double>(y.shape(), 0.5, 1.5, {}, generator);
  const std::vector<double> w = weights.to_vector();
  if (y.requires_grad()) y.backward(weights.to(y.device()));

  GradcheckResult result;
  double worst_excess = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor<double> gradient = leaves[i].grad();
    const std::vector<double> analytic =
        gradient.defined() ? gradient.to_vector()
                           : std::vector<double>(static_cast<size_t>(inputs[i].numel()));
    const std::vector<double> original = inputs[i].to_vector();
    const NoGrad no_grad;
    for (size_t e = 0; e < original.size(); ++e) {
      std::vector<Variable<double>> moved;
      for (const Tensor<double>& x : inputs) moved.emplace_back(x);
      auto at = [&](double delta) {
        // A dense copy of input i with one element changed; strides do not matter to its value.
        std::vector<double> values = original;
        values[e] += delta;
        moved[i] = Variable<double>(from_data<double>(std::span<const double>(values),
                                                      inputs[i].shape(), inputs[i].device()));
        return weighted_sum(f(moved).value(), w);
      };
      const double numeric = (at(options.step) - at(-options.step)) / (2 * options.step);
      const double error = std::abs(analytic[e] - numeric);
      const double excess = error - options.absolute - options.relative * std::abs(numeric);
      if (error > result.worst) result.worst = error;
      if (!(excess <= 0) && (result.ok || excess > worst_excess)) {  // NaN fails too
        result.ok = false;
        worst_excess = excess;
        result.message = concat("input ", i, " of shape ", inputs[i].shape(), ", element ", e,
                                ": backward gives ", analytic[e], ", central difference ", numeric);
      }
    }
  }
  return result;
}

}  // namespace gable
