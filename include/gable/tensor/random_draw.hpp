// SPDX-License-Identifier: Apache-2.0
// Four draws from one Philox counter, in arithmetic that every device repeats bit for bit: the
// normal's logarithm and sine are spelled out in separate multiplications and additions. Files
// that include it are compiled without contraction to fused multiply-adds.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "gable/core/philox.hpp"
#include "gable/tensor/kernels.hpp"

namespace gable {

namespace detail {

// -2 log(u) for u in (0, 1]: exponent plus atanh series of the mantissa in [sqrt(1/2), sqrt(2)).
GABLE_HD inline float minus_two_log(float u) {
  const auto bits = std::bit_cast<uint32_t>(u);
  int exponent = static_cast<int>(bits >> 23) - 127;
  float m = std::bit_cast<float>((bits & 0x7fffffU) | 0x3f800000U);
  if (m > 1.41421356F) {
    m *= 0.5F;
    ++exponent;
  }
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  float p = 0.2222222222F;
  p = p * z + 0.2857142857F;
  p = p * z + 0.4F;
  p = p * z + 0.6666666667F;
  p = p * z + 2.0F;
  const float log_u = static_cast<float>(exponent) * 0.69314718056F + s * p;
  return -2.0F * log_u;
}

// cos and sin of 2 pi v, v in [0, 1): quadrant, then Taylor polynomials on [-pi/4, pi/4].
GABLE_HD inline std::array<float, 2> cos_sin_turn(float v) {
  const float quarter = v * 4.0F;
  const float nearest = std::floor(quarter + 0.5F);
  const float x = (quarter - nearest) * 1.57079632679F;
  const float x2 = x * x;
  float s = -1.9515295891e-4F;
  s = s * x2 + 8.3321608736e-3F;
  s = s * x2 - 1.6666654611e-1F;
  s = s * x2 * x + x;
  float c = 2.443315711809948e-5F;
  c = c * x2 - 1.388731625493765e-3F;
  c = c * x2 + 4.166664568298827e-2F;
  c = c * x2 * x2 - 0.5F * x2 + 1.0F;
  switch (static_cast<int>(nearest) & 3) {
    case 0: return {c, s};
    case 1: return {-s, c};
    case 2: return {-c, -s};
    default: return {s, -c};
  }
}

// Four draws of one counter, before scaling.
GABLE_HD inline std::array<float, 4> normals(const std::array<uint32_t, 4>& bits) {
  std::array<float, 4> out{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    const float u = 1.0F - uniform_from_bits(bits[pair]);  // (0, 1]
    const float radius = std::sqrt(minus_two_log(u));
    const auto [c, s] = cos_sin_turn(uniform_from_bits(bits[pair + 1]));
    out[pair] = radius * c;
    out[pair + 1] = radius * s;
  }
  return out;
}

// Multiply-shift maps 32 bits to [0, span) without a division.
GABLE_HD inline int64_t integer_below(uint32_t bits, uint64_t span) {
  return static_cast<int64_t>((bits * span) >> 32);
}

}  // namespace detail

/// Element `lane` of the counter whose draws are `bits` (and `normal`, for that distribution).
template <class T>
GABLE_HD inline T draw_element(const RandomArgs<T>& a, uint32_t bits, float normal) {
  switch (a.distribution) {
    case Distribution::uniform: {
      const double u = uniform_from_bits(bits);
      const T out = convert<T>(a.a + (a.b - a.a) * u);
      // rounding to T must not reach the open end
      return convert<double>(out) >= a.b && a.b > a.a ? convert<T>(a.a) : out;
    }
    case Distribution::normal: return convert<T>(a.a + a.b * double{normal});
    case Distribution::integer:
      return convert<T>(static_cast<int64_t>(a.a) +
                        detail::integer_below(bits, static_cast<uint64_t>(a.b - a.a)));
    case Distribution::bernoulli: break;
  }
  return convert<T>(double{uniform_from_bits(bits)} < a.a ? 1 : 0);
}

}  // namespace gable
