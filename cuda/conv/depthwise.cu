// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: every tap is a product of channel vectors, so a thread runs over the taps
// of a few channels of one pixel; no columns, which would move each value once a tap.
#include <algorithm>

#include "conv/plan.hpp"
#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "runtime/launch.hpp"

namespace gable::cuda {

namespace {

constexpr int kThreads = 256;

// --- kernels

// Weights (C, 1, kh, kw) as (taps, C) in the compute type.
template <class T>
__global__ void taps_kernel(const T* w, int64_t channels, int64_t taps, Compute<T>* out) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= channels * taps) return;
  const int64_t tap = at / channels;
  out[at] = widen(w[(at - tap * channels) * taps + tap]);
}

struct PixelAt {
  int64_t image;
  int64_t y;
  int64_t x;
};
// Coordinates from running numbers below 2^31.
struct PixelIndex {
  Divider packs;  // of a pixel
  Divider h;
  Divider w;
  PixelIndex(int64_t packs_, const Size2d& grid)
      : packs(static_cast<uint32_t>(packs_)),
        h(static_cast<uint32_t>(grid.h)),
        w(static_cast<uint32_t>(grid.w)) {}
  __device__ __forceinline__ PixelAt pixel(uint32_t index) const {
    const uint32_t line = w.divide(index);
    const uint32_t image = h.divide(line);
    return {image, line - image * h.divisor, index - line * w.divisor};
  }
};

template <class T>
struct Operands {
  ConvGeometry g;
  PixelIndex index;
  Image<const T> in;       // read through the taps
  const Compute<T>* taps;  // (taps, C)
  const T* bias;
  int64_t bias_stride;
  T* out;         // dense
  int64_t count;  // packs of the output
};

template <class T, int V>
struct Sums {
  Compute<T> values[V];
  __device__ __forceinline__ Sums(const Operands<T>& o, int64_t channel) {
#pragma unroll
    for (int v = 0; v < V; ++v)
      values[v] = o.bias == nullptr ? Compute<T>{} : widen(o.bias[(channel + v) * o.bias_stride]);
  }
  __device__ __forceinline__ void add(const T* from, const Compute<T>* taps) {
    const auto x = *reinterpret_cast<const Pack<T, V>*>(from);
    const auto w = *reinterpret_cast<const Pack<Compute<T>, V>*>(taps);
#pragma unroll
    for (int v = 0; v < V; ++v) values[v] += widen(x.values[v]) * w.values[v];
  }
  __device__ __forceinline__ void store(T* to) const {
    Pack<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.values[v] = narrow<T>(values[v]);
    *reinterpret_cast<Pack<T, V>*>(to) = out;
  }
};

template <class T, int V>
__global__ void __launch_bounds__(kThreads) forward_kernel(const Operands<T> o) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= o.count) return;
  const ConvGeometry& g = o.g;
  const uint32_t pixel = o.index.packs.divide(static_cast<uint32_t>(at));
  const int64_t channel = (at - int64_t{pixel} * o.index.packs.divisor) * V;
  const PixelAt p = o.index.pixel(pixel);
  Sums<T, V> sums(o, channel);
  for (int64_t ky = 0; ky < g.kernel.h; ++ky) {
    const int64_t y = p.y * g.stride.h - g.pad_top + ky * g.dilation.h;
    if (y < 0 || y >= g.in.h) continue;
    for (int64_t kx = 0; kx < g.kernel.w; ++kx) {
      const int64_t x = p.x * g.stride.w - g.pad_left + kx * g.dilation.w;
      if (x < 0 || x >= g.in.w) continue;
      sums.add(
          o.in.data + p.image * o.in.image_step + y * o.in.row_step + x * o.in.pixel_step + channel,
          o.taps + (ky * g.kernel.w + kx) * g.groups + channel);
    }
  }
  sums.store(o.out + at * V);
}

// Each input pixel gathers from the output pixels that read it.
template <class T, int V>
__global__ void __launch_bounds__(kThreads) input_gradient_kernel(const Operands<T> o) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= o.count) return;
  const ConvGeometry& g = o.g;
  const uint32_t pixel = o.index.packs.divide(static_cast<uint32_t>(at));
  const int64_t channel = (at - int64_t{pixel} * o.index.packs.divisor) * V;
  const PixelAt p = o.index.pixel(pixel);
  Sums<T, V> sums(o, channel);
  for (int64_t ky = 0; ky < g.kernel.h; ++ky) {
    const int64_t y = p.y + g.pad_top - ky * g.dilation.h;
    if (y < 0 || y % g.stride.h != 0 || y / g.stride.h >= g.out.h) continue;
    for (int64_t kx = 0; kx < g.kernel.w; ++kx) {
      const int64_t x = p.x + g.pad_left - kx * g.dilation.w;
      if (x < 0 || x % g.stride.w != 0 || x / g.stride.w >= g.out.w) continue;
      sums.add(o.in.data + p.image * o.in.image_step + y / g.stride.h * o.in.row_step +
                   x / g.stride.w * o.in.pixel_step + channel,
               o.taps + (ky * g.kernel.w + kx) * g.groups + channel);
    }
  }
  sums.store(o.out + at * V);
}

constexpr int kLanes = 32;  // channels of a block
constexpr int kRows = 8;    // pixels that a block reads at a time

// Block (channels, tap, split): the part of the tap's gradient that the split's pixels give.
template <class T>
__global__ void __launch_bounds__(kLanes* kRows)
    weight_gradient_kernel(const ConvGeometry g, const PixelIndex index, const Image<const T> image,
                           const Image<const T> gradient, int64_t pixels, int64_t splits,
                           Compute<T>* partial) {
  using C = Compute<T>;
  __shared__ C sums[kRows][kLanes];
  const int lane = threadIdx.x % kLanes;
  const int row = threadIdx.x / kLanes;
  const int64_t channel_blocks = (g.groups + kLanes - 1) / kLanes;
  const int64_t tap = blockIdx.x / channel_blocks;
  const int64_t channel = (blockIdx.x - tap * channel_blocks) * kLanes + lane;
  const int64_t split = blockIdx.y;
  const int64_t begin = pixels / splits * split + min(split, pixels % splits);
  const int64_t end = begin + pixels / splits + (split < pixels % splits ? 1 : 0);
  const int64_t ky = tap / g.kernel.w;
  const int64_t kx = tap - ky * g.kernel.w;
  C sum{};
  if (channel < g.groups) {
    for (int64_t pixel = begin + row; pixel < end; pixel += kRows) {
      const PixelAt p = index.pixel(static_cast<uint32_t>(pixel));
      const int64_t y = p.y * g.stride.h - g.pad_top + ky * g.dilation.h;
      const int64_t x = p.x * g.stride.w - g.pad_left + kx * g.dilation.w;
      if (y < 0 || y >= g.in.h || x < 0 || x >= g.in.w) continue;
      sum += widen(gradient.data[p.image * gradient.image_step + p.y * gradient.row_step +
                                 p.x * gradient.pixel_step + channel]) *
             widen(image.data[p.image * image.image_step + y * image.row_step +
                              x * image.pixel_step + channel]);
    }
  }
  sums[row][lane] = sum;
  __syncthreads();
  if (row != 0 || channel >= g.groups) return;
  for (int r = 1; r < kRows; ++r) sum += sums[r][lane];
  partial[(split * g.kernel.h * g.kernel.w + tap) * g.groups + channel] = sum;
}

// (splits, taps, C) to (C, taps).
template <class C>
__global__ void sum_splits_kernel(const C* partial, int64_t splits, int64_t channels, int64_t taps,
                                  C* dw) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= channels * taps) return;
  double sum = 0;
  for (int64_t s = 0; s < splits; ++s) sum += partial[s * channels * taps + at];
  const int64_t tap = at / channels;
  dw[(at - tap * channels) * taps + tap] = static_cast<C>(sum);
}

// --- launchers

template <class T>
bool aligned(const T* data, int width) {
  return reinterpret_cast<uintptr_t>(data) % (sizeof(T) * static_cast<size_t>(width)) == 0;
}

template <class T>
void run_gather(const ConvGeometry& g, const TensorView<const T>& in, const T* w,
                const TensorView<const T>& bias, const TensorView<T>& out, bool forward,
                const Stream& stream) {
  constexpr int kWidth = kPackSize<Compute<T>>;
  const int64_t weights = g.groups * g.taps();
  const Scratch<Compute<T>> taps(weights, stream);
  launch(stream, {blocks_for(weights, kThreads), kThreads}, taps_kernel<T>, w, g.groups, g.taps(),
         taps.data());
  const Size2d grid = forward ? g.out : g.in;
  Operands<T> o{g,
                PixelIndex(g.groups, grid),
                Image<const T>(in),
                taps.data(),
                bias.data,
                bias.data == nullptr ? 0 : bias.stride(0),
                out.data,
                out.numel()};
  const bool packs = g.groups % kWidth == 0 && o.in.image_step % kWidth == 0 &&
                     o.in.row_step % kWidth == 0 && o.in.pixel_step % kWidth == 0 &&
                     aligned(o.in.data, kWidth) && aligned(o.out, kWidth);
  if (packs) {
    o.count /= kWidth;
    o.index = PixelIndex(g.groups / kWidth, grid);
  }
  const Grid blocks{blocks_for(o.count, kThreads), kThreads};
  if (forward)
    launch(stream, blocks, packs ? forward_kernel<T, kWidth> : forward_kernel<T, 1>, o);
  else
    launch(stream, blocks, packs ? input_gradient_kernel<T, kWidth> : input_gradient_kernel<T, 1>,
           o);
}

}  // namespace

template <class T>
void depthwise_conv(const Conv2dArgs<T>& args, const Stream& stream) {
  run_gather(args.g, args.x, args.w.data, args.bias, args.y, true, stream);
}

template <class T>
void depthwise_conv(const Conv2dInputGradArgs<T>& args, const Stream& stream) {
  run_gather(args.g, args.dy, args.w.data, args.bias, args.dx, false, stream);
}

template <class T>
void depthwise_conv(const Conv2dWeightGradArgs<T>& args, const Stream& stream) {
  using C = Compute<T>;
  const ConvGeometry& g = args.g;
  const int64_t weights = g.groups * g.taps();
  // Chains of at most some hundred additions a thread.
  const int64_t splits = std::clamp<int64_t>(g.out_pixels() / 2048, 1, 1024);
  const Scratch<C> partial(splits * weights, stream);
  const int64_t blocks = (g.groups + kLanes - 1) / kLanes * g.taps();
  launch(stream, {dim3(blocks_for(blocks, 1), static_cast<unsigned>(splits)), kLanes * kRows},
         weight_gradient_kernel<T>, g, PixelIndex(1, g.out), Image<const T>(args.x),
         Image<const T>(args.dy), g.out_pixels(), splits, partial.data());
  launch(stream, {blocks_for(weights, kThreads), kThreads}, sum_splits_kernel<C>, partial.data(),
         splits, g.groups, g.taps(), args.dw.data);
}

#define GABLE_DEPTHWISE(...) template void depthwise_conv(const __VA_ARGS__&, const Stream&);
GABLE_CONV_ARGS(GABLE_DEPTHWISE)

}  // namespace gable::cuda
