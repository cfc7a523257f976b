// SPDX-License-Identifier: Apache-2.0
// Conversions between all dtypes, and half and bfloat16 over every bit pattern.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gable/tensor/tensor.hpp"

namespace gable {
namespace {

TEST(Convert, AllPairsOfTypesKeepSmallIntegers) {
  AllTypes::for_each([]<class From>(TypeTag<From>) {
    AllTypes::for_each([]<class To>(TypeTag<To>) {
      const Tensor<From> x = from_data<From>(
          {convert<From>(0), convert<From>(1), convert<From>(100), convert<From>(3)}, {2, 2});
      std::vector<To> want;
      for (const From v : x.to_vector()) want.push_back(convert<To>(convert<double>(v)));
      EXPECT_EQ(x.template to<To>().to_vector(), want)
          << name(dtype_of<From>) << name(dtype_of<To>);
      // strided source, strided target
      std::vector<To> transposed = {want[0], want[2], want[1], want[3]};
      EXPECT_EQ(x.t().template to<To>().to_vector(), transposed);
      const Tensor<To> target = zeros<To>({2, 4});
      target.slice(1, 1, {}, 2).copy_(x.t());
      EXPECT_EQ(target.slice(1, 1, {}, 2).to_vector(), transposed);
      EXPECT_EQ(target.select(1, 0).to_vector(), std::vector<To>(2, To{}));
    });
  });
}

template <class To, class From>
std::vector<To> converted(std::initializer_list<From> values) {
  return from_data<From>(values).template to<To>().to_vector();
}

TEST(Convert, FloatToIntegerTruncatesAndSaturates) {
  const double inf = INFINITY;
  EXPECT_EQ(
      (converted<int32_t, double>({1.9, -1.9, 3e9, -3e9, NAN, inf, -inf, 2147483646.7})),
      (std::vector<int32_t>{1, -1, INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN, 2147483646}));
  EXPECT_EQ((converted<int64_t, float>({1e19F, -1e19F, NAN, 9.2233715e18F})),
            (std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, 9223371487098961920}));
  EXPECT_EQ((converted<uint8_t, float>({-1, 255.9F, 256, NAN, -0.5F, 254.5F})),
            (std::vector<uint8_t>{0, 255, 255, 0, 0, 254}));
  EXPECT_EQ((converted<uint8_t, half>({half(1000.0F), half(-3.0F), half(NAN)})),
            (std::vector<uint8_t>{255, 0, 0}));
  EXPECT_EQ((converted<int32_t, bfloat16>({bfloat16(1e30F), bfloat16(-7.5F)})),
            (std::vector<int32_t>{INT32_MAX, -7}));
}

TEST(Convert, BoolIsNotZero) {
  EXPECT_EQ((converted<bool, float>({0, -0.0F, 0.1F, NAN, INFINITY})),
            (std::vector<bool>{false, false, true, true, true}));
  EXPECT_EQ((converted<bool, half>({half(0.0F), half(-0.0F), half(NAN), half(1e-7F)})),
            (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ((converted<bool, int64_t>({0, 256, int64_t{1} << 40})),
            (std::vector<bool>{false, true, true}));
  EXPECT_EQ((converted<float, bool>({true, false})), (std::vector<float>{1, 0}));
}

TEST(Convert, DoubleToSmallFloatsRoundsOnce) {
  // Just above the middle between 1 and the next half: rounding to float first would lose it.
  const double above = 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(static_cast<float>((converted<half, double>({above}))[0]), 1.0009765625F);
  EXPECT_EQ(static_cast<float>((converted<half, double>({-above}))[0]), -1.0009765625F);
  EXPECT_EQ(static_cast<float>((converted<half, double>({1 + std::ldexp(1.0, -11)}))[0]), 1.0F);
  const double wide = 1 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40);
  EXPECT_EQ(static_cast<float>((converted<bfloat16, double>({wide}))[0]), 1.0078125F);
  EXPECT_TRUE(std::isinf(static_cast<float>((converted<half, double>({1e300}))[0])));
  EXPECT_EQ(static_cast<float>((converted<half, double>({1e-300}))[0]), 0.0F);
  EXPECT_TRUE(std::isnan(static_cast<float>((converted<bfloat16, double>({NAN}))[0])));
}

// Value of a bit pattern from its fields, in double.
double value_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1U << mantissa_bits) - 1));
  const int exponent = static_cast<int>((bits >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

template <class T>
void check_every_pattern(int exponent_bits, int mantissa_bits) {
  for (uint32_t b = 0; b < 0x10000U; ++b) {
    const T v = T::from_bits(static_cast<uint16_t>(b));
    const auto f = static_cast<float>(v);
    const double want = value_of(b, exponent_bits, mantissa_bits);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(f)) << b;
      ASSERT_TRUE(std::isnan(static_cast<float>(T(f)))) << b;
      ASSERT_EQ(T(f).bits & 0x8000U, b & 0x8000U) << b;
      continue;
    }
    ASSERT_EQ(static_cast<double>(f), want) << b;
    ASSERT_EQ(T(f).bits, b) << b;

    // Between this value and the next larger magnitude: nearest, ties to the even pattern. The
    // step past the largest finite value leads to infinity.
    if (std::isinf(want) || (b & 0x7fffU) == 0x7fffU) continue;
    const double next = value_of(b + 1, exponent_bits, mantissa_bits);
    const double step =
        std::isinf(next) ? want - value_of(b - 1, exponent_bits, mantissa_bits) : next - want;
    const double middle = want + step / 2;
    const auto exact = static_cast<float>(middle);
    if (static_cast<double>(exact) != middle) continue;  // below float's own subnormals
    const uint32_t even = (b & 1U) == 0 ? b : b + 1;
    ASSERT_EQ(T(exact).bits, even) << b;
    const float outward = std::nextafterf(exact, std::copysign(INFINITY, exact));
    const float inward = std::nextafterf(exact, 0.0F);
    ASSERT_EQ(T(outward).bits, b + 1) << b;
    ASSERT_EQ(T(inward).bits, b) << b;
  }
}

TEST(Convert, EveryHalfAndItsRoundingBorders) { check_every_pattern<half>(5, 10); }
TEST(Convert, EveryBfloat16AndItsRoundingBorders) { check_every_pattern<bfloat16>(8, 7); }

TEST(Convert, TensorsAgreeWithScalarsOverEveryPattern) {
  auto run = []<class T>(TypeTag<T>) {
    Tensor<T> all({0x10000});
    for (int64_t b = 0; b < 0x10000; ++b) all.data()[b] = T::from_bits(static_cast<uint16_t>(b));
    const Tensor<T> back = all.template to<float>().template to<T>();
    const Tensor<T> through_double = all.template to<double>().template to<T>();
    for (int64_t b = 0; b < 0x10000; ++b) {
      const auto f = static_cast<float>(all.data()[b]);
      if (std::isnan(f)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(back.data()[b])));
        ASSERT_TRUE(std::isnan(static_cast<float>(through_double.data()[b])));
      } else {
        ASSERT_EQ(back.data()[b].bits, b);
        ASSERT_EQ(through_double.data()[b].bits, b);
      }
    }
  };
  run(TypeTag<half>{});
  run(TypeTag<bfloat16>{});
}

}  // namespace
}  // namespace gable
