// SPDX-License-Identifier: Apache-2.0
// The built-in data set: procedural images, made in memory.
#pragma once

#include <cstdint>

#include "gable/data/dataset.hpp"

namespace gable::data {

struct SyntheticOptions {
  int64_t train = 10'000;
  int64_t test = 2'000;
  uint64_t seed = 0;
};

/// Ten classes of 32x32 colour images, for runs without any files: disc, square, triangle, ring,
/// cross, star, horizontal, vertical and diagonal stripes, checkerboard, each in random colours,
/// place, scale and rotation on a random background, with noise. Colours tell nothing of the
/// class, so a linear classifier stays below 60 %, while a small convolutional network passes
/// 90 % in a few epochs. Image i of a split depends on (seed, split, i) alone and has class
/// i mod 10; flips and small shifts keep the class.
class SyntheticShapes {
 public:
  [[nodiscard]] static TrainTest make(const SyntheticOptions& options = {});
  /// `count` images. Throws ShapeError for count < 1. About 40 us an image and thread.
  [[nodiscard]] static ImageDataset make(Split split, int64_t count, uint64_t seed = 0);
  /// Image `index` of a split alone: (32, 32, 3).
  [[nodiscard]] static Image render(Split split, int64_t index, uint64_t seed = 0);

  static constexpr int64_t kClasses = 10;
  static constexpr Normalization kNormalization = {.mean = {127.5F, 127.5F, 127.5F, 0},
                                                   .stddev = {72.0F, 72.0F, 72.0F, 1}};
};

}  // namespace gable::data
