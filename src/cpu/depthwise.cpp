// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: every tap is a product of channel vectors, so the loops run over
// channels; no im2col, which would move each value once a tap.
#include "depthwise.hpp"

#include <algorithm>

#include "conv_walk.hpp"
#include "gable/core/parallel.hpp"
#include "scratch.hpp"

namespace gable::cpu {

namespace {

bool is_depthwise(const ConvGeometry& g) {
  return g.groups > 1 && g.groups == g.in_channels && g.groups == g.out_channels;
}

// Weights (C, 1, kh, kw) as (taps, C) in the compute type.
template <class T, class C>
void load_taps(const ConvGeometry& g, const T* w, C* taps) {
  for (int64_t c = 0; c < g.groups; ++c)
    for (int64_t t = 0; t < g.taps(); ++t) taps[t * g.groups + c] = convert<C>(w[c * g.taps() + t]);
}

template <class T, class C>
void start_row(const TensorView<const T>& bias, int64_t channels, C* sum) {
  if (bias.data == nullptr)
    std::fill_n(sum, channels, C{});
  else
    for (int64_t c = 0; c < channels; ++c) sum[c] = convert<C>(bias.data[c * bias.stride(0)]);
}

template <class T, class C>
void multiply_add(int64_t n, const T* x, const C* w, C* sum) {
  for (int64_t c = 0; c < n; ++c) sum[c] += convert<C>(x[c]) * w[c];
}

constexpr int64_t kPixelGrain = 64;
constexpr int64_t kSplits = 16;  // fixed partial sums of the weight gradient

}  // namespace

template <class T>
bool depthwise(const Conv2dArgs<T>& a) {
  using C = Compute<T>;
  const ConvGeometry& g = a.g;
  if (!is_depthwise(g)) return false;
  const int64_t channels = g.groups;
  const Scratch<C> taps(g.taps() * channels);
  load_taps(g, a.w.data, taps.data());
  const PixelStrides strides(a.x.layout);
  parallel_for(g.out_pixels(), kPixelGrain, [&](int64_t begin, int64_t end) {
    const Scratch<C> sum(channels);
    PixelWalk at(begin, g.out);
    for (int64_t p = begin; p < end; ++p, at.next()) {
      start_row(a.bias, channels, sum.data());
      const int64_t y0 = at.y * g.stride.h - g.pad_top;
      const int64_t x0 = at.x * g.stride.w - g.pad_left;
      const TapRange ys(y0, g.dilation.h, g.kernel.h, g.in.h);
      const TapRange xs(x0, g.dilation.w, g.kernel.w, g.in.w);
      for (int64_t ky = ys.begin; ky < ys.end; ++ky)
        for (int64_t kx = xs.begin; kx < xs.end; ++kx)
          multiply_add(
              channels,
              a.x.data + strides.at(at.image, y0 + ky * g.dilation.h, x0 + kx * g.dilation.w),
              taps.data() + (ky * g.kernel.w + kx) * channels, sum.data());
      T* to = a.y.data + p * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = convert<T>(sum[c]);
    }
  });
  return true;
}

// Each input pixel gathers from the output pixels that read it, so no two threads write one.
template <class T>
bool depthwise(const Conv2dInputGradArgs<T>& a) {
  using C = Compute<T>;
  const ConvGeometry& g = a.g;
  if (!is_depthwise(g)) return false;
  const int64_t channels = g.groups;
  const Scratch<C> taps(g.taps() * channels);
  load_taps(g, a.w.data, taps.data());
  const PixelStrides strides(a.dy.layout);
  parallel_for(g.images * g.in.h * g.in.w, kPixelGrain, [&](int64_t begin, int64_t end) {
    const Scratch<C> sum(channels);
    PixelWalk at(begin, g.in);
    for (int64_t p = begin; p < end; ++p, at.next()) {
      start_row(a.bias, channels, sum.data());
      for (int64_t ky = 0; ky < g.kernel.h; ++ky) {
        const int64_t y = at.y + g.pad_top - ky * g.dilation.h;
        if (y < 0 || y % g.stride.h != 0 || y / g.stride.h >= g.out.h) continue;
        for (int64_t kx = 0; kx < g.kernel.w; ++kx) {
          const int64_t x = at.x + g.pad_left - kx * g.dilation.w;
          if (x < 0 || x % g.stride.w != 0 || x / g.stride.w >= g.out.w) continue;
          multiply_add(channels, a.dy.data + strides.at(at.image, y / g.stride.h, x / g.stride.w),
                       taps.data() + (ky * g.kernel.w + kx) * channels, sum.data());
        }
      }
      T* to = a.dx.data + p * channels;
      for (int64_t c = 0; c < channels; ++c) to[c] = convert<T>(sum[c]);
    }
  });
  return true;
}

template <class T>
bool depthwise(const Conv2dWeightGradArgs<T>& a) {
  using C = Compute<T>;
  const ConvGeometry& g = a.g;
  if (!is_depthwise(g)) return false;
  const int64_t channels = g.groups;
  const int64_t size = g.taps() * channels;
  const int64_t pixels = g.out_pixels();
  const int64_t splits = std::clamp<int64_t>(pixels / kPixelGrain, 1, kSplits);
  const Scratch<C> partial(splits * size);
  const PixelStrides from_x(a.x.layout);
  const PixelStrides from_dy(a.dy.layout);
  parallel_for(splits, 1, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      C* sum = partial.data() + s * size;
      std::fill_n(sum, size, C{});
      const int64_t begin = pixels * s / splits;
      PixelWalk at(begin, g.out);
      for (int64_t p = begin; p < pixels * (s + 1) / splits; ++p, at.next()) {
        const T* dy = a.dy.data + from_dy.at(at.image, at.y, at.x);
        const int64_t y0 = at.y * g.stride.h - g.pad_top;
        const int64_t x0 = at.x * g.stride.w - g.pad_left;
        const TapRange ys(y0, g.dilation.h, g.kernel.h, g.in.h);
        const TapRange xs(x0, g.dilation.w, g.kernel.w, g.in.w);
        for (int64_t ky = ys.begin; ky < ys.end; ++ky)
          for (int64_t kx = xs.begin; kx < xs.end; ++kx) {
            const T* x =
                a.x.data + from_x.at(at.image, y0 + ky * g.dilation.h, x0 + kx * g.dilation.w);
            C* to = sum + (ky * g.kernel.w + kx) * channels;
            for (int64_t c = 0; c < channels; ++c) to[c] += convert<C>(dy[c]) * convert<C>(x[c]);
          }
      }
    }
  });
  for (int64_t t = 0; t < g.taps(); ++t)
    for (int64_t c = 0; c < channels; ++c) {
      C sum{};
      for (int64_t s = 0; s < splits; ++s) sum += partial[s * size + t * channels + c];
      a.dw.data[c * g.taps() + t] = sum;
    }
  return true;
}

#define GABLE_DEPTHWISE(T)                                   \
  template bool depthwise<T>(const Conv2dArgs<T>&);          \
  template bool depthwise<T>(const Conv2dInputGradArgs<T>&); \
  template bool depthwise<T>(const Conv2dWeightGradArgs<T>&);
GABLE_DEPTHWISE(float)
GABLE_DEPTHWISE(double)
GABLE_DEPTHWISE(half)
GABLE_DEPTHWISE(bfloat16)

}  // namespace gable::cpu
