// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of convolutions: output pixels by running number, and their input taps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gable/ops/conv_geometry.hpp"

namespace gable::cpu {

/// Strides of an image batch whose channels are adjacent.
struct PixelStrides {
  int64_t n;
  int64_t h;
  int64_t w;
  explicit PixelStrides(const Layout& image)
      : n(image.strides()[0]), h(image.strides()[2]), w(image.strides()[3]) {}
  [[nodiscard]] int64_t at(int64_t image, int64_t y, int64_t x) const {
    return image * n + y * h + x * w;
  }
};

/// Walks the pixels of a (h, w) grid over images in order, from running number `index`.
struct PixelWalk {
  int64_t image;
  int64_t y;
  int64_t x;
  Size2d grid;
  PixelWalk(int64_t index, Size2d g)
      : image(index / (g.h * g.w)), y(index / g.w % g.h), x(index % g.w), grid(g) {}
  void next() {
    if (++x < grid.w) return;
    x = 0;
    if (++y < grid.h) return;
    y = 0;
    ++image;
  }
};

/// Range of taps [begin, end) of one dimension that fall inside [0, size) from `start`.
struct TapRange {
  int64_t begin;
  int64_t end;
  TapRange(int64_t start, int64_t dilation, int64_t taps, int64_t size)
      : begin(start >= 0 ? 0 : std::min(taps, (-start + dilation - 1) / dilation)),
        end(start >= size ? 0 : std::min(taps, (size - 1 - start) / dilation + 1)) {
    end = std::max(begin, end);
  }
};

}  // namespace gable::cpu
