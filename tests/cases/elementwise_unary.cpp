// SPDX-License-Identifier: Apache-2.0
// Unary elementwise operators without parameters. Ranges keep to the domain.
#include <cmath>

#include "elementwise.hpp"

namespace gable::cases {
namespace {

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }
double gelu_of(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh_of(double x) {
  const double pi = 3.14159265358979323846;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
}

const Register register_unary_float([](const Register::Add& add) {
  add_unary(add, "exp", {-4, 3}, GABLE_CALL1(exp), std::exp);
  add_unary(add, "log", {0.1, 9}, GABLE_CALL1(log), std::log);
  add_unary(add, "log1p", {-0.9, 4}, GABLE_CALL1(log1p), std::log1p);
  add_unary(add, "expm1", {-3, 2}, GABLE_CALL1(expm1), std::expm1);
  add_unary(add, "sqrt", {0.1, 4}, GABLE_CALL1(sqrt), std::sqrt);
  add_unary(add, "rsqrt", {0.1, 4}, GABLE_CALL1(rsqrt), [](double x) { return 1 / std::sqrt(x); });
  add_unary(add, "tanh", {-5, 5}, GABLE_CALL1(tanh), std::tanh);
  add_unary(add, "sigmoid", {-9, 9}, GABLE_CALL1(sigmoid), sigmoid_of);
  add_unary(add, "gelu", {-5, 5}, GABLE_CALL1(gelu), gelu_of);
  add_unary(add, "gelu_tanh", {-5, 5}, GABLE_CALL1(gelu_tanh), gelu_tanh_of);
  add_unary(add, "silu", {-9, 9}, GABLE_CALL1(silu), [](double x) { return x * sigmoid_of(x); });
  add_unary(add, "softplus", {-9, 9}, GABLE_CALL1(softplus),
            [](double x) { return std::log1p(std::exp(x)); });
  add_unary(add, "reciprocal", {0.2, 3}, GABLE_CALL1(reciprocal), [](double x) { return 1 / x; });
  add_unary(add, "sin", {-10, 10}, GABLE_CALL1(sin), std::sin);
  add_unary(add, "cos", {-10, 10}, GABLE_CALL1(cos), std::cos);
});

const Register register_rounding([](const Register::Add& add) {
  add_unary(add, "floor", {-4, 4}, GABLE_CALL1(floor), std::floor);
  add_unary(add, "ceil", {-4, 4}, GABLE_CALL1(ceil), std::ceil);
  add_unary(add, "round", {-4, 4}, GABLE_CALL1(round), std::nearbyint);
});

const Register register_unary_numeric([](const Register::Add& add) {
  add_unary(add, "neg", {}, GABLE_CALL1(neg), [](double x) { return -x; });
  add_unary(add, "abs", {}, GABLE_CALL1(abs), std::fabs);
  add_unary(add, "square", {}, GABLE_CALL1(square), [](double x) { return x * x; });
  add_unary(add, "sign", {}, GABLE_CALL1(sign), [](double x) { return x > 0 ? 1.0 : -1.0; });
  add_unary(add, "relu", {}, GABLE_CALL1(relu), [](double x) { return x > 0 ? x : 0.0; });
});

}  // namespace
}  // namespace gable::cases
