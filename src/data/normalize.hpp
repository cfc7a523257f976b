// SPDX-License-Identifier: Apache-2.0
// (pixel - mean) / stddev for bytes, by table.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "gable/data/dataset.hpp"

namespace gable::data::detail {

/// All 256 values of each channel, so that a pixel costs one load and every path gives the same
/// bits. Throws TypeError unless means are finite and deviations finite and positive.
class NormalizeTable {
 public:
  NormalizeTable(const Normalization& n, Where where) {
    for (size_t c = 0; c < kMaxChannels; ++c) {
      check<TypeError>(std::isfinite(n.mean[c]) && std::isfinite(n.stddev[c]) && n.stddev[c] > 0,
                       where, "expected a finite mean and a positive standard deviation, got ",
                       static_cast<double>(n.mean[c]), " and ", static_cast<double>(n.stddev[c]),
                       " for channel ", c);
      for (size_t v = 0; v < 256; ++v)
        values_[c][v] = (static_cast<float>(v) - n.mean[c]) / n.stddev[c];
    }
  }

  /// `pixels` pixels in a row, to the same order.
  void apply(const uint8_t* in, int64_t pixels, int64_t channels, float* out) const {
    for (int64_t i = 0; i < pixels; ++i)
      for (int64_t c = 0; c < channels; ++c) *out++ = values_[static_cast<size_t>(c)][*in++];
  }
  /// The same from right to left; `in` is the first pixel of the row.
  void apply_mirrored(const uint8_t* in, int64_t pixels, int64_t channels, float* out) const {
    for (int64_t i = pixels - 1; i >= 0; --i)
      for (int64_t c = 0; c < channels; ++c)
        *out++ = values_[static_cast<size_t>(c)][in[i * channels + c]];
  }

 private:
  std::array<std::array<float, 256>, kMaxChannels> values_;
};

}  // namespace gable::data::detail
