// SPDX-License-Identifier: Apache-2.0
// Comparisons and logic, on small integers so that equal values occur.
#include <cmath>

#include "elementwise.hpp"

namespace gable::cases {
namespace {

constexpr Range kSmall{-1.4, 1.4};

#define GABLE_COMPARE_CASE(function, expression)                                 \
  add_binary<false>(                                                             \
      add, #function, kSmall, kSmall,                                            \
      [](const auto& x, const auto& y) { return function(round(x), round(y)); }, \
      [](double x, double y) {                                                   \
        const double a = std::nearbyint(x);                                      \
        const double b = std::nearbyint(y);                                      \
        return (expression) ? 1.0 : 0.0;                                         \
      })

const Register register_compare([](const Register::Add& add) {
  GABLE_COMPARE_CASE(eq, a == b);
  GABLE_COMPARE_CASE(ne, a != b);
  GABLE_COMPARE_CASE(lt, a < b);
  GABLE_COMPARE_CASE(le, a <= b);
  GABLE_COMPARE_CASE(gt, a > b);
  GABLE_COMPARE_CASE(ge, a >= b);
  GABLE_COMPARE_CASE(logical_and, a != 0 && b != 0);
  GABLE_COMPARE_CASE(logical_or, a != 0 || b != 0);
  GABLE_COMPARE_CASE(logical_xor, (a != 0) != (b != 0));
});

}  // namespace
}  // namespace gable::cases
