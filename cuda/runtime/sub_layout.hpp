// SPDX-License-Identifier: Apache-2.0
// Layouts of some of a view's dimensions: rows, lines, reduced axes.
#pragma once

#include <cstdint>

#include "gable/core/layout.hpp"

namespace gable::cuda {

/// The dimensions for which `take(d)` holds, at offset 0.
template <class F>
[[nodiscard]] Layout sub_layout(const Layout& layout, F&& take) {
  Shape shape;
  Strides strides;
  for (int d = 0; d < layout.rank(); ++d) {
    if (!take(d)) continue;
    shape.push_back(layout.shape()[d]);
    strides.push_back(layout.strides()[d]);
  }
  return Layout(shape, strides, 0, "sub_layout");
}

}  // namespace gable::cuda
