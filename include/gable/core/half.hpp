// SPDX-License-Identifier: Apache-2.0
// half (IEEE binary16) and bfloat16: storage types with round-to-nearest-even conversions.
#pragma once

#include <bit>
#include <cstdint>

#include "gable/core/config.hpp"

namespace gable {

namespace detail {

GABLE_HD constexpr float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16;
  const uint32_t magnitude = h & 0x7fffU;
  if (magnitude >= 0x7c00U)  // inf, nan: keep the payload
    return std::bit_cast<float>(sign | 0x7f800000U | ((magnitude & 0x3ffU) << 13));
  if (magnitude >= 0x0400U) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  // zero and subnormals: magnitude * 2^-24 is exact in float
  const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8F;
  return sign != 0 ? -value : value;
}

GABLE_HD constexpr uint16_t float_to_half(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U)  // nan: quiet, keep the upper payload
    return static_cast<uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
  if (magnitude >= 0x477ff000U) return static_cast<uint16_t>(sign | 0x7c00U);  // >= 65520: inf
  if (magnitude < 0x38800000U) {  // result is subnormal: adding 0.5 rounds to 2^-24 steps
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3f000000U));
  }
  const uint32_t odd = (magnitude >> 13) & 1U;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000U + 0xfffU + odd) >> 13));
}

GABLE_HD constexpr float bfloat16_to_float(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

GABLE_HD constexpr uint16_t float_to_bfloat16(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  return static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace detail

/// IEEE binary16. A storage type: arithmetic happens in float.
struct half {
  uint16_t bits = 0;
  constexpr half() = default;
  GABLE_HD constexpr explicit half(float f) : bits(detail::float_to_half(f)) {}
  GABLE_HD constexpr explicit operator float() const { return detail::half_to_float(bits); }
  static constexpr half from_bits(uint16_t b) {
    half h;
    h.bits = b;
    return h;
  }
  friend constexpr bool operator==(half a, half b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

/// bfloat16: the upper half of a float. A storage type: arithmetic happens in float.
struct bfloat16 {
  uint16_t bits = 0;
  constexpr bfloat16() = default;
  GABLE_HD constexpr explicit bfloat16(float f) : bits(detail::float_to_bfloat16(f)) {}
  GABLE_HD constexpr explicit operator float() const { return detail::bfloat16_to_float(bits); }
  static constexpr bfloat16 from_bits(uint16_t b) {
    bfloat16 v;
    v.bits = b;
    return v;
  }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
};

}  // namespace gable
