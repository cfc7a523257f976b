// SPDX-License-Identifier: Apache-2.0
// Errors of the float functions of ops/math.hpp against double precision, over all exponents.
#include "gable/ops/math.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gable {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double ulp_of(float value) {
  const float magnitude = std::fabs(value);
  const float next = std::nextafter(magnitude, kInf);
  return std::isfinite(next) ? next - magnitude : magnitude - std::nextafter(magnitude, 0.0F);
}

// Every 4099th float, both signs, with NaN, infinities and subnormals among them.
template <class F, class R>
void expect_ulps(const char* name, double bound, F f, R reference, float limit = kInf) {
  double worst = 0;
  float worst_at = 0;
  auto visit = [&](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    if (std::fabs(x) > limit) return;
    const float got = f(x);
    const double want = reference(static_cast<double>(x));
    const auto rounded = static_cast<float>(want);
    if (std::isnan(rounded)) {
      ASSERT_TRUE(std::isnan(got)) << name << "(" << x << ") gave " << got;
    } else if (std::isinf(rounded) || std::isinf(got)) {
      ASSERT_EQ(got, rounded) << name << "(" << x << ")";
    } else {
      if (rounded == 0 && got == 0) {
        ASSERT_EQ(std::signbit(got), std::signbit(rounded)) << name << "(" << x << ")";
      }
      const double error = std::fabs(static_cast<double>(got) - want) / ulp_of(rounded);
      if (error > worst) {
        worst = error;
        worst_at = x;
      }
    }
  };
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 4099)
    visit(static_cast<uint32_t>(bits));
  for (const float x : {0.0F, -0.0F, 1.0F, -1.0F, kInf, -kInf, 88.722839F, 88.722847F, -87.336548F,
                        -103.27893F, -103.97209F, 1.17549435e-38F, 1e-45F})
    visit(std::bit_cast<uint32_t>(x));
  EXPECT_LE(worst, bound) << name << " at " << worst_at;
}

TEST(Math, Exp) {
  expect_ulps(
      "exp", 1, [](float x) { return math::exp(x); }, [](double x) { return std::exp(x); });
}
TEST(Math, Expm1) {
  expect_ulps(
      "expm1", 2, [](float x) { return math::expm1(x); }, [](double x) { return std::expm1(x); });
}
TEST(Math, Log) {
  expect_ulps(
      "log", 1, [](float x) { return math::log(x); }, [](double x) { return std::log(x); });
}
TEST(Math, Log1p) {
  expect_ulps(
      "log1p", 2, [](float x) { return math::log1p(x); }, [](double x) { return std::log1p(x); });
  for (float x = 0; x <= 1; x += 0x1p-12F)
    EXPECT_LE(std::fabs(math::log1p_unit(x) - std::log1p(double{x})), 2 * ulp_of(x));
}
TEST(Math, Tanh) {
  expect_ulps(
      "tanh", 3, [](float x) { return math::tanh(x); }, [](double x) { return std::tanh(x); });
}
TEST(Math, Erf) {
  expect_ulps(
      "erf", 2, [](float x) { return math::erf(x); }, [](double x) { return std::erf(x); });
}
TEST(Math, Sigmoid) {
  expect_ulps(
      "sigmoid", 3, [](float x) { return math::sigmoid(x); },
      [](double x) { return 1 / (1 + std::exp(-x)); });
}
TEST(Math, SinCos) {
  expect_ulps(
      "sin", 2, [](float x) { return math::fast_sin(x); }, [](double x) { return std::sin(x); },
      math::kSinCosLimit);
  expect_ulps(
      "cos", 2, [](float x) { return math::fast_cos(x); }, [](double x) { return std::cos(x); },
      math::kSinCosLimit);
}
TEST(Math, DoubleIsTheStandardLibrary) {
  EXPECT_EQ(math::exp(0.7), std::exp(0.7));
  EXPECT_EQ(math::erf(0.7), std::erf(0.7));
}

}  // namespace
}  // namespace gable
