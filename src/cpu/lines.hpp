// SPDX-License-Identifier: Apache-2.0
// Lines: visits every one-dimensional line of equally shaped views along one dimension.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "gable/core/layout.hpp"
#include "gable/core/parallel.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "scratch.hpp"

namespace gable::cpu {

/// Lines that are taken at once.
inline constexpr int64_t kLineBlock = 16;

/// `layout` with `dim` dropped: one element a line.
inline Layout without_dim(const Layout& layout, int dim) {
  Shape shape = layout.shape();
  Strides strides = layout.strides();
  shape.erase(dim);
  strides.erase(dim);
  return Layout(shape, strides, 0, "lines");
}

/// Lines along `dim` of N layouts of one shape, taken in blocks of neighbours where these lie
/// nearer in memory than the elements of a line do.
template <int N>
class Lines {
 public:
  using Offsets = std::array<int64_t, N>;

  Lines(const std::array<const Layout*, N>& layouts, int dim)
      : length(layouts[0]->shape()[dim]), loop_(make_loop(layouts, dim)) {
    for (size_t k = 0; k < N; ++k) steps[k] = layouts[k]->strides()[dim];
    neighbours = loop_.row_strides();
    blocked = loop_.row_length() > 1 && std::abs(neighbours[0]) < std::abs(steps[0]);
  }

  /// Calls f(offsets of the first line, count) with count <= kLineBlock neighbouring lines.
  template <class F>
  void parallel(F&& f) const {
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, length));
    loop_.parallel(grain, [&](Offsets at, int64_t n) {
      while (n > 0) {
        const int64_t count = blocked ? std::min(n, kLineBlock) : 1;
        f(at, count);
        for (size_t k = 0; k < N; ++k) at[k] += count * neighbours[k];
        n -= count;
      }
    });
  }

  int64_t length;
  Offsets steps{};       ///< along a line
  Offsets neighbours{};  ///< from one line to the next
  bool blocked = false;  ///< more than one line at once

 private:
  static StridedLoop<N> make_loop(const std::array<const Layout*, N>& layouts, int dim) {
    std::array<Layout, N> rest;
    std::array<const Layout*, N> pointers{};
    for (size_t k = 0; k < N; ++k) {
      rest[k] = without_dim(*layouts[k], dim);
      pointers[k] = &rest[k];
    }
    return StridedLoop<N>(pointers);
  }

  StridedLoop<N> loop_;
};

/// Uninitialised memory of a few lines: on the stack where they are short.
template <class C>
class LineBuffer {
 public:
  explicit LineBuffer(int64_t count) : heap_(count > kSmall ? count : 0), count_(count) {}
  [[nodiscard]] C* data() { return count_ > kSmall ? heap_.data() : small_.data(); }

 private:
  static constexpr int64_t kSmall = 1024;
  Scratch<C> heap_;
  int64_t count_;
  alignas(64) std::array<C, kSmall> small_;
};

}  // namespace gable::cpu
