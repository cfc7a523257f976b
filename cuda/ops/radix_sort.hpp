// SPDX-License-Identifier: Apache-2.0
// Stable sorting of 64-bit keys with 64-bit values by CUB, compiled once for all that need it.
#pragma once

#include <bit>
#include <cstdint>

#include "gable/core/device.hpp"

namespace gable::cuda {

/// Sorts `count` pairs by bits [0, bits) of their keys into other arrays; equal keys keep their
/// order.
void sort_pairs(const uint64_t* keys, uint64_t* sorted_keys, const int64_t* values,
                int64_t* sorted_values, int64_t count, int bits, const Stream& stream);

/// Bits that the numbers 0 .. count - 1 need.
[[nodiscard]] inline int bits_for(int64_t count) {
  return count <= 1 ? 0 : static_cast<int>(std::bit_width(static_cast<uint64_t>(count - 1)));
}

}  // namespace gable::cuda
