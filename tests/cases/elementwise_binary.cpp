// SPDX-License-Identifier: Apache-2.0
// Binary elementwise operators with broadcasting.
#include <algorithm>
#include <cmath>

#include "elementwise.hpp"

namespace gable::cases {
namespace {

const Register register_binary_float([](const Register::Add& add) {
  add_binary(add, "div", {}, {0.3, 3}, GABLE_CALL2(div), [](double a, double b) { return a / b; });
  add_binary(add, "pow", {0.2, 3}, {-2, 2}, GABLE_CALL2(pow),
             [](double a, double b) { return std::pow(a, b); });
  add_binary(add, "atan2", {}, {0.2, 2}, GABLE_CALL2(atan2),
             [](double a, double b) { return std::atan2(a, b); });
  add_binary(add, "atan2/left_half", {0.2, 2}, {-2, -0.2}, GABLE_CALL2(atan2),
             [](double a, double b) { return std::atan2(a, b); });
});

const Register register_binary_numeric([](const Register::Add& add) {
  add_binary(
      add, "add", {}, {}, [](const auto& a, const auto& b) { return a + b; },
      [](double a, double b) { return a + b; });
  add_binary(add, "sub", {}, {}, GABLE_CALL2(sub), [](double a, double b) { return a - b; });
  add_binary(add, "mul", {}, {}, GABLE_CALL2(mul), [](double a, double b) { return a * b; });
  add_binary(add, "maximum", {}, {}, GABLE_CALL2(maximum),
             [](double a, double b) { return std::max(a, b); });
  add_binary(add, "minimum", {}, {}, GABLE_CALL2(minimum),
             [](double a, double b) { return std::min(a, b); });
  add(differentiable(
      "operators/binary", {{{3, 1, 5}, 0.5, 2}, {{4, 1}, 0.5, 2}},
      [](const auto& in) { return (in[0] + in[1]) * in[0] / (in[1] - -in[0] * in[1]); },
      pointwise([](const auto& v) { return (v[0] + v[1]) * v[0] / (v[1] + v[0] * v[1]); })));
});

}  // namespace
}  // namespace gable::cases
