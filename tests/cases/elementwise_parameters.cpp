// SPDX-License-Identifier: Apache-2.0
// Elementwise operators with scalar parameters, and operators between tensors and numbers.
#include <algorithm>
#include <cmath>

#include "elementwise.hpp"

namespace gable::cases {
namespace {

const Register register_parameters([](const Register::Add& add) {
  add_unary(
      add, "leaky_relu", {}, [](const auto& x) { return leaky_relu(x, 0.125); },
      [](double x) { return x > 0 ? x : 0.125 * x; });
  add_unary(add, "leaky_relu/default", {}, GABLE_CALL1(leaky_relu),
            [](double x) { return x > 0 ? x : 0.01 * x; });
  add_unary(
      add, "clamp", {}, [](const auto& x) { return clamp(x, -0.75, 1.25); },
      [](double x) { return std::clamp(x, -0.75, 1.25); });
  add_unary(
      add, "add_scalar", {}, [](const auto& x) { return add_scalar(x, 1.5); },
      [](double x) { return x + 1.5; });
  add_unary(
      add, "rsub_scalar", {}, [](const auto& x) { return rsub_scalar(x, 1.5); },
      [](double x) { return 1.5 - x; });
  add_unary(
      add, "mul_scalar", {}, [](const auto& x) { return mul_scalar(x, -2.5); },
      [](double x) { return -2.5 * x; });
  add_unary(
      add, "div_scalar", {}, [](const auto& x) { return div_scalar(x, 0.75); },
      [](double x) { return x / 0.75; });
  add_unary(
      add, "rdiv_scalar", {0.3, 3}, [](const auto& x) { return rdiv_scalar(x, 2.5); },
      [](double x) { return 2.5 / x; });
  add_unary(
      add, "pow_scalar", {0.2, 3}, [](const auto& x) { return pow_scalar(x, 1.75); },
      [](double x) { return std::pow(x, 1.75); });
  add_unary(
      add, "pow_scalar/cube", {-2, 2}, [](const auto& x) { return pow_scalar(x, 3); },
      [](double x) { return x * x * x; });
  add_unary(
      add, "pow_scalar/zero", {-2, 2}, [](const auto& x) { return pow_scalar(x, 0); },
      [](double) { return 1.0; });
});

const Register register_operators([](const Register::Add& add) {
  add_unary(
      add, "operators/number_right", {},
      [](const auto& x) { return ((x + 1.5) * 0.5 - 2.5) / 0.75; },
      [](double x) { return ((x + 1.5) * 0.5 - 2.5) / 0.75; });
  add_unary(
      add, "operators/number_left", {},
      [](const auto& x) { return 2.0 / (4.0 - 0.5 * (1.0 + -x)); },
      [](double x) { return 2.0 / (4.0 - 0.5 * (1.0 - x)); });
});

// Values are small integers, so that each outcome occurs.
const Register register_predicates([](const Register::Add& add) {
  add_unary<false>(
      add, "isnan", {}, [](const auto& x) { return isnan(sqrt(x)); },
      [](double x) { return x < 0 ? 1.0 : 0.0; });
  add_unary<false>(
      add, "isinf", {}, [](const auto& x) { return isinf(reciprocal(round(x))); },
      [](double x) { return std::nearbyint(x) == 0 ? 1.0 : 0.0; });
  add_unary<false>(
      add, "isfinite", {}, [](const auto& x) { return isfinite(log(round(x))); },
      [](double x) { return std::nearbyint(x) > 0 ? 1.0 : 0.0; });
  add_unary<false>(
      add, "logical_not", {}, [](const auto& x) { return logical_not(round(x)); },
      [](double x) { return std::nearbyint(x) == 0 ? 1.0 : 0.0; });
});

}  // namespace
}  // namespace gable::cases
