// SPDX-License-Identifier: Apache-2.0
// Convolution as blocks of im2col rows and gemm, for every float type and every layout.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "conv_walk.hpp"
#include "depthwise.hpp"
#include "gable/core/parallel.hpp"
#include "gemm.hpp"
#include "kernel.hpp"
#include "scratch.hpp"
#include "simd.hpp"

namespace gable {

namespace cpu {
namespace {

// Rows of an im2col block: 256 KB, which stays in L2, but enough rows that the product does not
// drown in packing its weights.
int64_t block_rows(const ConvGeometry& g, int64_t element_size) {
  const int64_t row = std::max<int64_t>(1, g.depth()) * element_size;
  return std::clamp<int64_t>((256 << 10) / row, 96, 2048);
}

// A 1x1 convolution whose input pixels are the rows of a matrix already.
bool is_pointwise(const ConvGeometry& g, const Layout& x) {
  return g.taps() == 1 && g.stride == Size2d(1) && g.pad_top == 0 && g.pad_left == 0 &&
         g.in == g.out && x.is_channels_last();
}

template <class T>
Matrix<const T> weight_of_group(const ConvGeometry& g, const T* w, int64_t group) {
  return {w + group * g.group_out() * g.depth(), g.depth(), 1};
}

// Rows [begin, end) of the im2col matrix of one group: (pixels, taps x group_in).
template <class T>
void im2col(const ConvGeometry& g, const TensorView<const T>& x, int64_t group, int64_t begin,
            int64_t end, T* rows) {
  const PixelStrides strides(x.layout);
  const int64_t channels = g.group_in();
  const T* source = x.data + group * channels;
  const bool adjacent = strides.w == channels && g.dilation.w == 1;
  PixelWalk at(begin, g.out);
  for (int64_t p = begin; p < end; ++p, at.next()) {
    T* row = rows + (p - begin) * g.depth();
    const int64_t y0 = at.y * g.stride.h - g.pad_top;
    const int64_t x0 = at.x * g.stride.w - g.pad_left;
    const TapRange ys(y0, g.dilation.h, g.kernel.h, g.in.h);
    const TapRange xs(x0, g.dilation.w, g.kernel.w, g.in.w);
    const int64_t line = g.kernel.w * channels;
    for (int64_t ky = 0; ky < g.kernel.h; ++ky) {
      T* to = row + ky * line;
      if (ky < ys.begin || ky >= ys.end || xs.begin == xs.end) {
        std::fill_n(to, line, T{});
        continue;
      }
      std::fill_n(to, xs.begin * channels, T{});
      std::fill_n(to + xs.end * channels, (g.kernel.w - xs.end) * channels, T{});
      const T* from = source + strides.at(at.image, y0 + ky * g.dilation.h, x0);
      if (adjacent) {
        std::copy_n(from + xs.begin * channels, (xs.end - xs.begin) * channels,
                    to + xs.begin * channels);
        continue;
      }
      for (int64_t kx = xs.begin; kx < xs.end; ++kx)
        std::copy_n(from + kx * g.dilation.w * strides.w, channels, to + kx * channels);
    }
  }
}

// Adds im2col rows of output pixels [begin, end) back onto the images they came from; `images`
// starts at image `first` and is dense channels-last.
template <class C>
void col2im(const ConvGeometry& g, const C* rows, int64_t group, int64_t begin, int64_t end,
            int64_t first, C* images) {
  const int64_t channels = g.group_in();
  PixelWalk at(begin, g.out);
  for (int64_t p = begin; p < end; ++p, at.next()) {
    const C* row = rows + (p - begin) * g.depth();
    const int64_t y0 = at.y * g.stride.h - g.pad_top;
    const int64_t x0 = at.x * g.stride.w - g.pad_left;
    const TapRange ys(y0, g.dilation.h, g.kernel.h, g.in.h);
    const TapRange xs(x0, g.dilation.w, g.kernel.w, g.in.w);
    for (int64_t ky = ys.begin; ky < ys.end; ++ky)
      for (int64_t kx = xs.begin; kx < xs.end; ++kx) {
        const C* from = row + (ky * g.kernel.w + kx) * channels;
        const int64_t pixel = ((at.image - first) * g.in.h + y0 + ky * g.dilation.h) * g.in.w + x0 +
                              kx * g.dilation.w;
        C* to = images + pixel * g.in_channels + group * channels;
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
      }
  }
}

// Copies rows of output-side pixels [begin, end) of one group into a dense matrix.
template <class T>
void gather_rows(const ConvGeometry& g, const TensorView<const T>& dy, int64_t group, int64_t begin,
                 int64_t end, T* rows) {
  const PixelStrides strides(dy.layout);
  const int64_t channels = g.group_out();
  PixelWalk at(begin, g.out);
  for (int64_t p = begin; p < end; ++p, at.next())
    std::copy_n(dy.data + strides.at(at.image, at.y, at.x) + group * channels, channels,
                rows + (p - begin) * channels);
}

// Output-side pixels [begin, end) of one group as a matrix, copied only if dy is a slice.
template <class T>
Matrix<const T> rows_of(const ConvGeometry& g, const TensorView<const T>& dy, int64_t group,
                        int64_t begin, int64_t end, T* scratch) {
  if (dy.layout.is_channels_last())
    return {dy.data + begin * g.out_channels + group * g.group_out(), g.out_channels, 1};
  gather_rows(g, dy, group, begin, end, scratch);
  return {scratch, g.group_out(), 1};
}

}  // namespace
}  // namespace cpu

template <class T>
static void kernel(const Conv2dArgs<T>& a) {
  const ConvGeometry& g = a.g;
  if (cpu::depthwise(a)) return;
  if constexpr (std::is_same_v<T, float>)
    if (cpu::simd::conv(a)) return;
  cpu::GemmOptions<T> options;
  if (a.bias.data != nullptr) options = {false, a.bias.data, a.bias.stride(0)};
  const int64_t pixels = g.out_pixels();
  if (cpu::is_pointwise(g, a.x.layout) && g.groups == 1) {
    cpu::gemm<T, T>(pixels, g.out_channels, g.in_channels, {a.x.data, g.in_channels, 1},
                    {a.w.data, 1, g.in_channels}, {a.y.data, g.out_channels, 1}, options);
    return;
  }
  const int64_t rows = cpu::block_rows(g, sizeof(T));
  const int64_t blocks = (pixels + rows - 1) / rows;
  parallel_for(blocks, 1, [&](int64_t first, int64_t last) {
    const cpu::Scratch<T> columns(std::min(rows, pixels) * g.depth());
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * rows;
      const int64_t end = std::min(pixels, begin + rows);
      for (int64_t group = 0; group < g.groups; ++group) {
        cpu::im2col(g, a.x, group, begin, end, columns.data());
        cpu::GemmOptions<T> local = options;
        const int64_t channel = group * g.group_out();
        if (local.bias != nullptr) local.bias += channel * local.bias_stride;
        cpu::gemm<T, T>(end - begin, g.group_out(), g.depth(), {columns.data(), g.depth(), 1},
                        cpu::weight_of_group(g, a.w.data, group).transposed(),
                        {a.y.data + begin * g.out_channels + channel, g.out_channels, 1}, local);
      }
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(Conv2dArgs)

template <class T>
static void kernel(const Conv2dInputGradArgs<T>& a) {
  using C = Compute<T>;
  const ConvGeometry& g = a.g;
  if (cpu::depthwise(a)) return;
  if constexpr (std::is_same_v<T, float>)
    if (cpu::simd::conv(a)) return;
  const int64_t plane = g.out.h * g.out.w;
  const int64_t size = g.in.h * g.in.w * g.in_channels;
  // A thread takes whole images, since neighbouring output pixels add to the same input pixels.
  const int64_t images = std::max<int64_t>(1, 128 / std::max<int64_t>(1, plane));
  const int64_t rows = std::min(images * plane, cpu::block_rows(g, sizeof(C)));
  parallel_for((g.images + images - 1) / images, 1, [&](int64_t first, int64_t last) {
    const cpu::Scratch<C> columns(rows * g.depth());
    const cpu::Scratch<T> gathered(a.dy.layout.is_channels_last() ? 0 : rows * g.group_out());
    const cpu::Scratch<C> sums(std::is_same_v<T, C> ? 0 : images * size);
    for (int64_t at = first; at < last; ++at) {
      const int64_t image = at * images;
      const int64_t count = std::min(images, g.images - image);
      T* target = a.dx.data + image * size;
      C* sum = sums.data();
      if constexpr (std::is_same_v<T, C>) sum = target;
      for (int64_t i = 0; i < count * size; ++i)
        sum[i] = a.bias.data == nullptr
                     ? C{}
                     : convert<C>(a.bias.data[i % g.in_channels * a.bias.stride(0)]);
      const int64_t stop = (image + count) * plane;
      for (int64_t begin = image * plane; begin < stop; begin += rows) {
        const int64_t end = std::min(stop, begin + rows);
        for (int64_t group = 0; group < g.groups; ++group) {
          const auto dy = cpu::rows_of(g, a.dy, group, begin, end, gathered.data());
          cpu::gemm<T, C>(end - begin, g.depth(), g.group_out(), dy,
                          cpu::weight_of_group(g, a.w.data, group), {columns.data(), g.depth(), 1});
          cpu::col2im(g, columns.data(), group, begin, end, image, sum);
        }
      }
      if constexpr (!std::is_same_v<T, C>)
        for (int64_t i = 0; i < count * size; ++i) target[i] = convert<T>(sum[i]);
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(Conv2dInputGradArgs)

template <class T>
static void kernel(const Conv2dWeightGradArgs<T>& a) {
  using C = Compute<T>;
  const ConvGeometry& g = a.g;
  if (cpu::depthwise(a)) return;
  if constexpr (std::is_same_v<T, float>)
    if (cpu::simd::conv(a)) return;
  const int64_t pixels = g.out_pixels();
  std::fill_n(a.dw.data, a.dw.numel(), C{});
  // Long blocks, one after another, so that sums run in one order whatever the thread count.
  const int64_t rows = std::clamp<int64_t>((int64_t{1} << 20) / std::max<int64_t>(1, g.depth()),
                                           256, std::max<int64_t>(256, pixels));
  const bool pointwise = cpu::is_pointwise(g, a.x.layout);
  const cpu::Scratch<T> columns(pointwise ? 0 : std::min(rows, pixels) * g.depth());
  const cpu::Scratch<T> gathered(a.dy.layout.is_channels_last() ? 0 : rows * g.group_out());
  for (int64_t begin = 0; begin < pixels; begin += rows) {
    const int64_t end = std::min(pixels, begin + rows);
    for (int64_t group = 0; group < g.groups; ++group) {
      cpu::Matrix<const T> x{columns.data(), g.depth(), 1};
      if (pointwise)
        x = {a.x.data + begin * g.in_channels + group * g.group_in(), g.in_channels, 1};
      else
        parallel_for(end - begin, 32, [&](int64_t first, int64_t last) {
          cpu::im2col(g, a.x, group, begin + first, begin + last,
                      columns.data() + first * g.depth());
        });
      const auto dy = cpu::rows_of(g, a.dy, group, begin, end, gathered.data());
      C* dw = a.dw.data + group * g.group_out() * g.depth();
      cpu::gemm<T, C>(g.group_out(), g.depth(), end - begin, dy.transposed(), x, {dw, g.depth(), 1},
                      {true, nullptr, 1});
    }
  }
}
GABLE_CPU_KERNEL_FLOATS(Conv2dWeightGradArgs)

}  // namespace gable
