// SPDX-License-Identifier: Apache-2.0
// Pooling over images whose channels are adjacent: a thread computes a pack of channels of one
// pixel, forward from the pixels of its window, backward from the windows that contain it, so that
// nothing is added up atomically.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "gable/ops/pool.hpp"
#include "kernel.hpp"
#include "runtime/launch.hpp"

namespace gable::cuda {

inline constexpr int kPoolThreads = 256;

/// One dimension's sizes, as the kernels' 32 bits.
struct PoolAxis {
  int in;
  int out;
  int kernel;
  int dilation;
  int before;  ///< padding
  int after;
  Divider stride;
  Divider steps;  ///< by the dilation

  PoolAxis(int64_t in_size, int64_t out_size, int64_t taps, int64_t stride_by, int64_t dilate,
           int64_t pad_before, int64_t pad_after)
      : in(narrow_size(in_size)),
        out(narrow_size(out_size)),
        kernel(narrow_size(taps)),
        dilation(narrow_size(dilate)),
        before(narrow_size(pad_before)),
        after(narrow_size(pad_after)),
        stride(static_cast<uint32_t>(narrow_size(stride_by))),
        steps(static_cast<uint32_t>(dilation)) {}

  /// First value of window i, which may be padding.
  __device__ __forceinline__ int start(int i) const {
    return i * static_cast<int>(stride.divisor) - before;
  }
  /// The windows [first, last] whose `reach` values from their start may contain value x.
  __device__ __forceinline__ void windows(int x, int reach, int& first, int& last) const {
    const int padded = x + before;
    first = padded < reach ? 0 : static_cast<int>(stride.divide(padded - reach)) + 1;
    last = min(static_cast<int>(stride.divide(padded)), out - 1);
  }

 private:
  // Sizes, and sums of two of them, stay below 2^31.
  static int narrow_size(int64_t size) {
    check<Error>(size >= 0 && size < (int64_t{1} << 29), current_op(),
                 "expected image, kernel and padding sizes below 2^29, got ", size);
    return static_cast<int>(size);
  }
};

/// Strides in elements of images whose channels are adjacent.
struct ImageStrides {
  int64_t n;
  int64_t h;
  int64_t w;
  explicit ImageStrides(const Layout& image)
      : n(image.strides()[0]), h(image.strides()[2]), w(image.strides()[3]) {}
  /// True if all pixels start at multiples of `width` elements of T.
  template <class T>
  [[nodiscard]] bool align(const T* data, int width) const {
    return reinterpret_cast<uintptr_t>(data) % (sizeof(T) * static_cast<size_t>(width)) == 0 &&
           n % width == 0 && h % width == 0 && w % width == 0;
  }
};

/// Numbers (image, row, column, pack of channels) of a dense channels-last result.
struct PoolIndex {
  int64_t count;
  uint32_t packs;
  uint32_t width;
  uint32_t height;
  bool small;
  Divider by_packs;
  Divider by_width;
  Divider by_height;

  PoolIndex(int64_t images, Size2d grid, int64_t channel_packs)
      : count(images * grid.h * grid.w * channel_packs),
        packs(static_cast<uint32_t>(channel_packs)),
        width(static_cast<uint32_t>(grid.w)),
        height(static_cast<uint32_t>(grid.h)),
        small(count < (int64_t{1} << 31)) {
    check<Error>(channel_packs < (int64_t{1} << 31), current_op(),
                 "expected fewer than 2^31 channels, got ", channel_packs);
    by_packs = Divider(packs);
    by_width = Divider(width);
    by_height = Divider(height);
  }

  struct At {
    int64_t image;
    int y;
    int x;
    int pack;
  };
  __device__ __forceinline__ At at(int64_t position) const {
    if (small) {
      const auto p = static_cast<uint32_t>(position);
      const uint32_t pixel = by_packs.divide(p);
      const uint32_t row = by_width.divide(pixel);
      const uint32_t image = by_height.divide(row);
      return {image, static_cast<int>(row - image * height), static_cast<int>(pixel - row * width),
              static_cast<int>(p - pixel * packs)};
    }
    const int64_t pixel = position / packs;
    const int64_t row = pixel / width;
    const int64_t image = row / height;
    return {image, static_cast<int>(row - image * height), static_cast<int>(pixel - row * width),
            static_cast<int>(position - pixel * packs)};
  }
  [[nodiscard]] unsigned blocks() const { return blocks_for(count, kPoolThreads); }
};

inline PoolAxis rows(const PoolGeometry& g) {
  return {g.in.h, g.out.h, g.kernel.h, g.stride.h, g.dilation.h, g.padding.top, g.padding.bottom};
}
inline PoolAxis columns(const PoolGeometry& g) {
  return {g.in.w, g.out.w, g.kernel.w, g.stride.w, g.dilation.w, g.padding.left, g.padding.right};
}

template <class T, int V>
__device__ __forceinline__ Pack<T, V> load_channels(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <class T, int V>
__device__ __forceinline__ void store_channels(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

}  // namespace gable::cuda
