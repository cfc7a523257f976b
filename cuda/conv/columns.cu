// SPDX-License-Identifier: Apache-2.0
// im2col and its adjoint, packs of channels at a time.
#include "conv/columns.hpp"
#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "runtime/launch.hpp"

namespace gable::cuda {

namespace {

constexpr int kThreads = 256;

// n / d and n % d for 0 <= n < 2^31.
struct Split {
  uint32_t quotient;
  uint32_t rest;
};
__device__ __forceinline__ Split split(uint32_t n, const Divider& d) {
  const uint32_t q = d.divide(n);
  return {q, n - q * d.divisor};
}

Divider divider(int64_t n) { return Divider(static_cast<uint32_t>(n)); }

struct Columns {
  int64_t in_h;
  int64_t in_w;
  int64_t stride_h;
  int64_t stride_w;
  int64_t dilation_h;
  int64_t dilation_w;
  int64_t pad_top;
  int64_t pad_left;
  int64_t group_in;
  int64_t taps;
  int64_t row;    // of the matrix, in elements
  Divider packs;  // of a group's channels
  Divider tap_count;
  Divider kernel_w;
  Divider row_packs;  // of the matrix
  Divider out_w;
  Divider out_h;

  Columns(const ConvGeometry& g, int width)
      : in_h(g.in.h),
        in_w(g.in.w),
        stride_h(g.stride.h),
        stride_w(g.stride.w),
        dilation_h(g.dilation.h),
        dilation_w(g.dilation.w),
        pad_top(g.pad_top),
        pad_left(g.pad_left),
        group_in(g.group_in()),
        taps(g.taps()),
        row(g.groups * g.depth()),
        packs(divider(g.group_in() / width)),
        tap_count(divider(g.taps())),
        kernel_w(divider(g.kernel.w)),
        row_packs(divider(g.groups * g.depth() / width)),
        out_w(divider(g.out.w)),
        out_h(divider(g.out.h)) {}
};

// One pack a thread. Pixels count from the start of image `image`; the block begins at `skipped`.
template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    im2col_kernel(const Columns c, const Image<const T> x, int64_t image, uint32_t skipped,
                  int64_t count, T* columns) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count) return;
  const Split pixel = split(static_cast<uint32_t>(at), c.row_packs);
  const Split pack = split(pixel.rest, c.packs);
  const Split tap = split(pack.quotient, c.tap_count);  // quotient: the group
  const Split ky = split(tap.rest, c.kernel_w);
  const Split ox = split(pixel.quotient + skipped, c.out_w);
  const Split oy = split(ox.quotient, c.out_h);
  const int64_t y = oy.rest * c.stride_h - c.pad_top + ky.quotient * c.dilation_h;
  const int64_t w = ox.rest * c.stride_w - c.pad_left + ky.rest * c.dilation_w;
  Pack<T, V> values = {};
  if (y >= 0 && y < c.in_h && w >= 0 && w < c.in_w) {
    const T* from = x.data + (image + oy.quotient) * x.image_step + y * x.row_step +
                    w * x.pixel_step + tap.quotient * c.group_in + int64_t{pack.rest} * V;
    values = *reinterpret_cast<const Pack<T, V>*>(from);
  }
  *reinterpret_cast<Pack<T, V>*>(columns + at * V) = values;
}

template <class T, int V>
void launch_im2col(const ConvGeometry& g, const Image<const T>& x, int64_t begin, int64_t end,
                   T* columns, const Stream& stream) {
  const Columns c(g, V);
  const int64_t plane = g.out.h * g.out.w;
  const int64_t count = (end - begin) * c.row / V;
  launch(stream, {blocks_for(count, kThreads), kThreads}, im2col_kernel<T, V>, c, x, begin / plane,
         static_cast<uint32_t>(begin % plane), count, columns);
}

// --- the adjoint

struct Gather {
  Columns c;
  int64_t out_h;
  int64_t out_w;
  int64_t kernel_h;
  int64_t kernel_w;
  int64_t in_channels;
  Divider pixel_packs;  // of all channels of a pixel
  Divider in_w;
  Divider in_h;
  Divider stride_h;
  Divider stride_w;

  Gather(const ConvGeometry& g, int width)
      : c(g, width),
        out_h(g.out.h),
        out_w(g.out.w),
        kernel_h(g.kernel.h),
        kernel_w(g.kernel.w),
        in_channels(g.in_channels),
        pixel_packs(divider(g.in_channels / width)),
        in_w(divider(g.in.w)),
        in_h(divider(g.in.h)),
        stride_h(divider(g.stride.h)),
        stride_w(divider(g.stride.w)) {}
};

// Output coordinate that reads `position` of the padded input through a tap; false if none does.
__device__ __forceinline__ bool reader(int64_t position, const Divider& stride, int64_t size,
                                       int64_t& out) {
  if (position < 0 || position >= (int64_t{1} << 31)) return false;
  const Split s = split(static_cast<uint32_t>(position), stride);
  out = s.quotient;
  return s.rest == 0 && out < size;
}

template <class T, int V>
__global__ void __launch_bounds__(kThreads)
    col2im_kernel(const Gather g, const Compute<T>* columns, const T* bias, int64_t bias_stride,
                  int64_t count, T* dx) {
  using C = Compute<T>;
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= count) return;
  const Split pixel = split(static_cast<uint32_t>(at), g.pixel_packs);
  const Split x = split(pixel.quotient, g.in_w);
  const Split y = split(x.quotient, g.in_h);
  const Split pack = split(pixel.rest, g.c.packs);  // quotient: the group
  const int64_t channel = int64_t{pixel.rest} * V;
  const C* from = columns + pack.quotient * (g.c.taps * g.c.group_in) + int64_t{pack.rest} * V;
  C sum[V];
#pragma unroll
  for (int v = 0; v < V; ++v)
    sum[v] = bias == nullptr ? C{} : widen(bias[(channel + v) * bias_stride]);
  for (int64_t ky = 0; ky < g.kernel_h; ++ky) {
    int64_t oy = 0;
    if (!reader(y.rest + g.c.pad_top - ky * g.c.dilation_h, g.stride_h, g.out_h, oy)) continue;
    const int64_t line = (y.quotient * g.out_h + oy) * g.out_w;
    for (int64_t kx = 0; kx < g.kernel_w; ++kx) {
      int64_t ox = 0;
      if (!reader(x.rest + g.c.pad_left - kx * g.c.dilation_w, g.stride_w, g.out_w, ox)) continue;
      const auto values = *reinterpret_cast<const Pack<C, V>*>(
          from + (line + ox) * g.c.row + (ky * g.kernel_w + kx) * g.c.group_in);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += values.values[v];
    }
  }
  Pack<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.values[v] = narrow<T>(sum[v]);
  *reinterpret_cast<Pack<T, V>*>(dx + at * V) = out;
}

template <class T, int V>
void launch_col2im(const ConvGeometry& g, int64_t images, const Compute<T>* columns,
                   const TensorView<const T>& bias, T* dx, const Stream& stream) {
  const int64_t count = images * g.in.h * g.in.w * g.in_channels / V;
  launch(stream, {blocks_for(count, kThreads), kThreads}, col2im_kernel<T, V>, Gather(g, V),
         columns, bias.data, bias.data == nullptr ? 0 : bias.stride(0), count, dx);
}

template <class T>
bool aligned(const T* data, int width) {
  return reinterpret_cast<uintptr_t>(data) % (sizeof(T) * static_cast<size_t>(width)) == 0;
}

}  // namespace

template <class T>
void im2col(const ConvGeometry& g, const Image<const T>& x, int64_t begin, int64_t end, T* columns,
            const Stream& stream) {
  if (begin == end || g.depth() == 0) return;
  constexpr int kWidth = kPackSize<T>;
  if (g.group_in() % kWidth == 0 && x.image_step % kWidth == 0 && x.row_step % kWidth == 0 &&
      x.pixel_step % kWidth == 0 && aligned(x.data, kWidth))
    launch_im2col<T, kWidth>(g, x, begin, end, columns, stream);
  else
    launch_im2col<T, 1>(g, x, begin, end, columns, stream);
}

template <class T>
void col2im(const ConvGeometry& g, int64_t images, const Compute<T>* columns,
            const TensorView<const T>& bias, T* dx, const Stream& stream) {
  if (images * g.in.h * g.in.w * g.in_channels == 0) return;
  constexpr int kWidth = kPackSize<Compute<T>>;
  if (g.group_in() % kWidth == 0 && aligned(dx, kWidth))
    launch_col2im<T, kWidth>(g, images, columns, bias, dx, stream);
  else
    launch_col2im<T, 1>(g, images, columns, bias, dx, stream);
}

#define GABLE_COLUMNS(T)                                                                 \
  template void im2col(const ConvGeometry&, const Image<const T>&, int64_t, int64_t, T*, \
                       const Stream&);                                                   \
  template void col2im(const ConvGeometry&, int64_t, const Compute<T>*,                  \
                       const TensorView<const T>&, T*, const Stream&);
GABLE_COLUMNS(float)
GABLE_COLUMNS(double)
GABLE_COLUMNS(half)
GABLE_COLUMNS(bfloat16)

}  // namespace gable::cuda
