// SPDX-License-Identifier: Apache-2.0
// Pooling over channels-last images: the inner loops run over channels.
#include "gable/ops/pool.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "conv_walk.hpp"
#include "gable/core/parallel.hpp"
#include "kernel.hpp"
#include "scratch.hpp"

namespace gable {

namespace cpu {
namespace {

constexpr int64_t kChannels = 64;  // channels of a block
constexpr int64_t kPixelGrain = 64;

// Windows of one dimension: values [begin, end) and the size that the mean divides by.
struct Windows {
  std::vector<int64_t> begin;
  std::vector<int64_t> end;
  std::vector<int64_t> count;
};

Windows windows(const PoolGeometry& g, int64_t in, int64_t out, int64_t kernel, int64_t stride,
                int64_t before, int64_t after) {
  Windows w;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t from = g.adaptive ? i * in / out : i * stride - before;
    const int64_t to =
        g.adaptive ? ((i + 1) * in + out - 1) / out : std::min(from + kernel, in + after);
    w.begin.push_back(std::max<int64_t>(from, 0));
    w.end.push_back(std::min(to, in));
    w.count.push_back(g.count_include_pad && !g.adaptive ? to - from
                                                         : w.end.back() - w.begin.back());
  }
  return w;
}
Windows windows_h(const PoolGeometry& g) {
  return windows(g, g.in.h, g.out.h, g.kernel.h, g.stride.h, g.padding.top, g.padding.bottom);
}
Windows windows_w(const PoolGeometry& g) {
  return windows(g, g.in.w, g.out.w, g.kernel.w, g.stride.w, g.padding.left, g.padding.right);
}

// One output pixel, channels [c, c + n).
template <class T>
void max_block(const MaxPool2dArgs<T>& a, const PixelWalk& at, int64_t pixel, int64_t c,
               int64_t n) {
  using C = Compute<T>;
  const PoolGeometry& g = a.g;
  const PixelStrides strides(a.x.layout);
  const int64_t y0 = at.y * g.stride.h - g.padding.top;
  const int64_t x0 = at.x * g.stride.w - g.padding.left;
  const TapRange ys(y0, g.dilation.h, g.kernel.h, g.in.h);
  const TapRange xs(x0, g.dilation.w, g.kernel.w, g.in.w);
  C best[kChannels];
  int32_t tap[kChannels];
  std::fill_n(best, n, -std::numeric_limits<C>::infinity());
  std::fill_n(tap, n, static_cast<int32_t>(ys.begin * g.kernel.w + xs.begin));
  for (int64_t ky = ys.begin; ky < ys.end; ++ky)
    for (int64_t kx = xs.begin; kx < xs.end; ++kx) {
      const T* from =
          a.x.data + strides.at(at.image, y0 + ky * g.dilation.h, x0 + kx * g.dilation.w) + c;
      const auto number = static_cast<int32_t>(ky * g.kernel.w + kx);
      for (int64_t i = 0; i < n; ++i) {
        const C value = convert<C>(from[i]);
        const bool wins = (value > best[i]) | (value != value);
        best[i] = wins ? value : best[i];
        tap[i] = wins ? number : tap[i];
      }
    }
  const int64_t to = pixel * g.channels + c;
  for (int64_t i = 0; i < n; ++i) a.y.data[to + i] = convert<T>(best[i]);
  if (a.taps8.data != nullptr)
    for (int64_t i = 0; i < n; ++i) a.taps8.data[to + i] = static_cast<uint8_t>(tap[i]);
  if (a.taps32.data != nullptr) std::copy_n(tap, n, a.taps32.data + to);
}

// Backward kernels: one task an image and a channel block, which nobody else writes; sums in the
// compute type. add(.., sums, width) adds to sums[pixel * width + i].
template <class T, class Add>
void scatter_blocks(const PoolGeometry& g, const TensorView<T>& dx, Add&& add) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const int64_t blocks = (g.channels + kChannels - 1) / kChannels;
  const int64_t plane = g.in.h * g.in.w;
  const int64_t width = std::min(kChannels, g.channels);
  parallel_for(g.images * blocks, 1, [&](int64_t first, int64_t last) {
    const Scratch<C> sums(plane * width);
    for (int64_t task = first; task < last; ++task) {
      const int64_t image = task / blocks;
      const int64_t c = task % blocks * kChannels;
      const int64_t n = std::min(kChannels, g.channels - c);
      std::fill_n(sums.data(), plane * width, C{});
      add(image, c, n, sums.data(), width);
      for (int64_t pixel = 0; pixel < plane; ++pixel) {
        T* to = dx.data + (image * plane + pixel) * g.channels + c;
        for (int64_t i = 0; i < n; ++i) to[i] = convert<T>(sums[pixel * width + i]);
      }
    }
  });
}

}  // namespace
}  // namespace cpu

template <class T>
static void kernel(const MaxPool2dArgs<T>& a) {
  const PoolGeometry& g = a.g;
  parallel_for(g.images * g.out.h * g.out.w, cpu::kPixelGrain, [&](int64_t begin, int64_t end) {
    cpu::PixelWalk at(begin, g.out);
    for (int64_t p = begin; p < end; ++p, at.next())
      for (int64_t c = 0; c < g.channels; c += cpu::kChannels)
        cpu::max_block(a, at, p, c, std::min(cpu::kChannels, g.channels - c));
  });
}
GABLE_CPU_KERNEL_FLOATS(MaxPool2dArgs)

template <class T>
static void kernel(const MaxPool2dBackwardArgs<T>& a) {
  const PoolGeometry& g = a.g;
  const cpu::PixelStrides strides(a.dy.layout);
  cpu::scatter_blocks<T>(
      g, a.dx, [&](int64_t image, int64_t c, int64_t n, auto* sums, int64_t width) {
        using C = std::remove_reference_t<decltype(*sums)>;
        const int64_t plane = g.out.h * g.out.w;
        cpu::PixelWalk at(image * plane, g.out);
        for (int64_t p = image * plane; p < (image + 1) * plane; ++p, at.next()) {
          const T* dy = a.dy.data + strides.at(image, at.y, at.x) + c;
          const int64_t from = p * g.channels + c;
          for (int64_t i = 0; i < n; ++i) {
            const int64_t tap =
                a.taps8.data != nullptr ? a.taps8.data[from + i] : a.taps32.data[from + i];
            const int64_t y = at.y * g.stride.h - g.padding.top + tap / g.kernel.w * g.dilation.h;
            const int64_t x = at.x * g.stride.w - g.padding.left + tap % g.kernel.w * g.dilation.w;
            if (y < 0 || y >= g.in.h || x < 0 || x >= g.in.w) continue;  // a window without a value
            sums[(y * g.in.w + x) * width + i] += convert<C>(dy[i]);
          }
        }
      });
}
GABLE_CPU_KERNEL_FLOATS(MaxPool2dBackwardArgs)

template <class T>
static void kernel(const AvgPool2dArgs<T>& a) {
  const PoolGeometry& g = a.g;
  const cpu::Windows rows = cpu::windows_h(g);
  const cpu::Windows columns = cpu::windows_w(g);
  const cpu::PixelStrides strides(a.x.layout);
  const int64_t window = g.adaptive ? g.in.h * g.in.w / (g.out.h * g.out.w) : g.taps();
  const int64_t grain = std::max<int64_t>(1, 4 * cpu::kPixelGrain / std::max<int64_t>(1, window));
  parallel_for(g.images * g.out.h * g.out.w, grain, [&](int64_t begin, int64_t end) {
    double sum[cpu::kChannels];
    cpu::PixelWalk at(begin, g.out);
    for (int64_t p = begin; p < end; ++p, at.next()) {
      const auto i = static_cast<size_t>(at.y);
      const auto j = static_cast<size_t>(at.x);
      const double scale = 1.0 / static_cast<double>(rows.count[i] * columns.count[j]);
      for (int64_t c = 0; c < g.channels; c += cpu::kChannels) {
        const int64_t n = std::min(cpu::kChannels, g.channels - c);
        std::fill_n(sum, n, 0.0);
        for (int64_t y = rows.begin[i]; y < rows.end[i]; ++y)
          for (int64_t x = columns.begin[j]; x < columns.end[j]; ++x) {
            const T* from = a.x.data + strides.at(at.image, y, x) + c;
            for (int64_t k = 0; k < n; ++k) sum[k] += convert<double>(from[k]);
          }
        T* to = a.y.data + p * g.channels + c;
        for (int64_t k = 0; k < n; ++k) to[k] = convert<T>(sum[k] * scale);
      }
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(AvgPool2dArgs)

template <class T>
static void kernel(const AvgPool2dBackwardArgs<T>& a) {
  const PoolGeometry& g = a.g;
  const cpu::Windows rows = cpu::windows_h(g);
  const cpu::Windows columns = cpu::windows_w(g);
  const cpu::PixelStrides strides(a.dy.layout);
  cpu::scatter_blocks<T>(
      g, a.dx, [&](int64_t image, int64_t c, int64_t n, auto* sums, int64_t width) {
        using C = std::remove_reference_t<decltype(*sums)>;
        for (int64_t oy = 0; oy < g.out.h; ++oy)
          for (int64_t ox = 0; ox < g.out.w; ++ox) {
            const auto i = static_cast<size_t>(oy);
            const auto j = static_cast<size_t>(ox);
            const C scale = C(1) / static_cast<C>(rows.count[i] * columns.count[j]);
            C scaled[cpu::kChannels];
            const T* dy = a.dy.data + strides.at(image, oy, ox) + c;
            for (int64_t k = 0; k < n; ++k) scaled[k] = convert<C>(dy[k]) * scale;
            for (int64_t y = rows.begin[i]; y < rows.end[i]; ++y)
              for (int64_t x = columns.begin[j]; x < columns.end[j]; ++x) {
                C* to = sums + (y * g.in.w + x) * width;
                for (int64_t k = 0; k < n; ++k) to[k] += scaled[k];
              }
          }
      });
}
GABLE_CPU_KERNEL_FLOATS(AvgPool2dBackwardArgs)

}  // namespace gable
