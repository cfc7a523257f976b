// SPDX-License-Identifier: Apache-2.0
// Average pooling, plain and adaptive, forward and backward. Sums of a window are in double.
#include <bit>

#include "pool.cuh"

namespace gable {
namespace {

using cuda::ImageStrides;
using cuda::kPoolThreads;
using cuda::Pack;
using cuda::PoolAxis;
using cuda::PoolIndex;

// Values of one dimension: [begin, end) and the size that the mean divides by.
struct Window {
  int begin;
  int end;
  int count;
};

// a / b with 32 bits where they do.
__device__ __forceinline__ int divide(int64_t a, int b) {
  if (a < (int64_t{1} << 32))
    return static_cast<int>(static_cast<uint32_t>(a) / static_cast<uint32_t>(b));
  return static_cast<int>(a / b);
}

struct Windows {
  PoolAxis rows;
  PoolAxis columns;
  bool adaptive;
  bool count_padding;
  explicit Windows(const PoolGeometry& g)
      : rows(cuda::rows(g)),
        columns(cuda::columns(g)),
        adaptive(g.adaptive),
        count_padding(g.count_include_pad && !g.adaptive) {}

  __device__ __forceinline__ Window at(const PoolAxis& axis, int i) const {
    int from = 0;
    int to = axis.in;
    if (!adaptive) {
      from = axis.start(i);
      to = min(from + axis.kernel, axis.in + axis.after);
    } else if (axis.out > 1) {
      from = divide(static_cast<int64_t>(i) * axis.in, axis.out);
      to = divide(static_cast<int64_t>(i + 1) * axis.in + axis.out - 1, axis.out);
    }
    Window w{max(from, 0), min(to, axis.in), 0};
    w.count = count_padding ? to - from : w.end - w.begin;
    return w;
  }
  // The windows [first, last] that contain value x.
  __device__ __forceinline__ void containing(const PoolAxis& axis, int x, int& first,
                                             int& last) const {
    if (!adaptive) return axis.windows(x, axis.kernel, first, last);
    first = 0;
    last = 0;
    if (axis.out == 1) return;
    first = divide(static_cast<int64_t>(x) * axis.out, axis.in);
    last = divide(static_cast<int64_t>(x + 1) * axis.out + axis.in - 1, axis.in) - 1;
  }
};

// --- kernels

template <class T, int V>
__device__ __forceinline__ void add_channels(double (&sum)[V], const T* from) {
  const Pack<T, V> pack = cuda::load_channels<T, V>(from);
#pragma unroll
  for (int v = 0; v < V; ++v) sum[v] += static_cast<double>(cuda::widen(pack.values[v]));
}

template <class T, int V>
__device__ __forceinline__ void store_means(T* to, const double (&sum)[V], double scale) {
  Pack<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v)
    out.values[v] = cuda::narrow<T>(static_cast<Compute<T>>(sum[v] * scale));
  cuda::store_channels<T, V>(to, out);
}

__device__ __forceinline__ double scale_of(const Window& rows, const Window& columns) {
  return 1.0 / static_cast<double>(static_cast<int64_t>(rows.count) * columns.count);
}

// A thread sums a window.
template <class T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    mean_kernel(T* y, const T* x, const PoolIndex index, const Windows windows,
                const ImageStrides strides) {
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (position >= index.count) return;
  const PoolIndex::At at = index.at(position);
  const Window rows = windows.at(windows.rows, at.y);
  const Window columns = windows.at(windows.columns, at.x);
  x += at.image * strides.n + static_cast<int64_t>(at.pack) * V;
  double sum[V] = {};
  for (int iy = rows.begin; iy < rows.end; ++iy)
    for (int ix = columns.begin; ix < columns.end; ++ix)
      add_channels<T, V>(sum, x + iy * strides.h + ix * strides.w);
  store_means<T, V>(y + position * V, sum, scale_of(rows, columns));
}

// A block sums a window of many values: threadIdx.y over its values, threadIdx.x over packs of
// channels; `index` counts tiles of blockDim.x packs.
template <class T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    wide_mean_kernel(T* y, const T* x, const PoolIndex index, const Windows windows,
                     const ImageStrides strides, const int packs) {
  __shared__ double shared[V][kPoolThreads];
  const PoolIndex::At at = index.at(blockIdx.x);
  const Window rows = windows.at(windows.rows, at.y);
  const Window columns = windows.at(windows.columns, at.x);
  const int64_t pack = static_cast<int64_t>(at.pack) * blockDim.x + threadIdx.x;
  const bool inside = pack < packs;
  const int width = columns.end - columns.begin;
  const int64_t taps = static_cast<int64_t>(rows.end - rows.begin) * width;
  x += at.image * strides.n + rows.begin * strides.h + columns.begin * strides.w + pack * V;
  double sum[V] = {};
#pragma unroll 4
  for (int64_t tap = threadIdx.y; tap < (inside ? taps : 0); tap += blockDim.y) {
    const int iy = divide(tap, width);
    const auto ix = tap - static_cast<int64_t>(iy) * width;
    add_channels<T, V>(sum, x + iy * strides.h + ix * strides.w);
  }
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int v = 0; v < V; ++v) shared[v][thread] = sum[v];
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) shared[v][thread] = sum[v] += shared[v][thread + half * blockDim.x];
  }
  if (threadIdx.y != 0 || !inside) return;
  const int64_t pixel = blockIdx.x / index.packs;
  store_means<T, V>(y + (pixel * packs + pack) * V, sum, scale_of(rows, columns));
}

// dx of a pixel: shares of dy of the windows that contain it, in their order.
template <class T, int V>
__global__ void __launch_bounds__(kPoolThreads)
    mean_backward_kernel(T* dx, const T* dy, const PoolIndex index, const Windows windows,
                         const ImageStrides strides) {
  using C = Compute<T>;
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (position >= index.count) return;
  const PoolIndex::At at = index.at(position);
  dy += at.image * strides.n + static_cast<int64_t>(at.pack) * V;
  int top;
  int bottom;
  int left;
  int right;
  windows.containing(windows.rows, at.y, top, bottom);
  windows.containing(windows.columns, at.x, left, right);
  C sum[V] = {};
  for (int oy = top; oy <= bottom; ++oy) {
    const int row_count = windows.at(windows.rows, oy).count;
    for (int ox = left; ox <= right; ++ox) {
      const int count = windows.at(windows.columns, ox).count;
      const C scale = C(1) / static_cast<C>(static_cast<int64_t>(row_count) * count);
      const Pack<T, V> pack = cuda::load_channels<T, V>(dy + oy * strides.h + ox * strides.w);
#pragma unroll
      for (int v = 0; v < V; ++v) sum[v] += cuda::widen(pack.values[v]) * scale;
    }
  }
  Pack<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.values[v] = cuda::narrow<T>(sum[v]);
  cuda::store_channels<T, V>(dx + position * V, out);
}

// --- launchers

// Values of a window from which a block is worth it.
constexpr int64_t kWideWindow = 32;

template <class T, int V>
void run_mean(const AvgPool2dArgs<T>& a, const ImageStrides& strides, const Stream& stream) {
  const PoolGeometry& g = a.g;
  const int64_t packs = g.channels / V;
  const auto across = std::bit_ceil(static_cast<unsigned>(std::clamp<int64_t>(packs, 1, 32)));
  const PoolIndex tiles(g.images, g.out, (packs + across - 1) / across);
  const int64_t taps = g.adaptive ? g.in.h * g.in.w / (g.out.h * g.out.w) : g.taps();
  if (taps < kWideWindow || !tiles.small) {
    const PoolIndex index(g.images, g.out, packs);
    cuda::launch(stream, {index.blocks(), kPoolThreads}, mean_kernel<T, V>, a.y.data, a.x.data,
                 index, Windows(g), strides);
    return;
  }
  cuda::launch(stream, {cuda::blocks_for(tiles.count, 1), dim3(across, kPoolThreads / across)},
               wide_mean_kernel<T, V>, a.y.data, a.x.data, tiles, Windows(g), strides,
               static_cast<int>(packs));
}

template <class T>
bool packs_fit(const PoolGeometry& g, const ImageStrides& strides, const T* image,
               const T* result) {
  constexpr int width = cuda::kPackSize<T>;
  return g.channels % width == 0 && strides.align(image, width) &&
         reinterpret_cast<uintptr_t>(result) % 16 == 0;
}

}  // namespace

template <class T>
static void kernel(const AvgPool2dArgs<T>& a, const Stream& stream) {
  if (a.y.numel() == 0) return;
  const ImageStrides strides(a.x.layout);
  if (packs_fit<T>(a.g, strides, a.x.data, a.y.data))
    run_mean<T, cuda::kPackSize<T>>(a, strides, stream);
  else
    run_mean<T, 1>(a, strides, stream);
}

template <class T>
static void kernel(const AvgPool2dBackwardArgs<T>& a, const Stream& stream) {
  if (a.dx.numel() == 0) return;
  constexpr int width = cuda::kPackSize<T>;
  const ImageStrides strides(a.dy.layout);
  const bool packed = packs_fit<T>(a.g, strides, a.dy.data, a.dx.data);
  const PoolIndex index(a.g.images, a.g.in, a.g.channels / (packed ? width : 1));
  cuda::launch(stream, {index.blocks(), kPoolThreads},
               packed ? mean_backward_kernel<T, width> : mean_backward_kernel<T, 1>, a.dx.data,
               a.dy.data, index, Windows(a.g), strides);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(AvgPool2dArgs)
GABLE_CUDA_KERNEL_FLOATS(AvgPool2dBackwardArgs)
