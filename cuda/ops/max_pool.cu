// SPDX-License-Identifier: Apache-2.0
// Maximum pooling, forward and backward.
#include "pool.cuh"

namespace gable {
namespace {

using cuda::ImageStrides;
using cuda::kPoolThreads;
using cuda::Pack;
using cuda::PoolAxis;
using cuda::PoolIndex;

// --- kernels

// The first of equal values wins, and NaN. Windows of padding only: -inf of a tap outside.
template <class T, class Tap, int V>
__global__ void __launch_bounds__(kPoolThreads)
    max_kernel(T* y, Tap* taps, const T* x, const PoolIndex index, const PoolAxis rows,
               const PoolAxis columns, const ImageStrides strides) {
  using C = Compute<T>;
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (position >= index.count) return;
  const PoolIndex::At at = index.at(position);
  const int y0 = rows.start(at.y);
  const int x0 = columns.start(at.x);
  x += at.image * strides.n + static_cast<int64_t>(at.pack) * V;
  C best[V];
  int tap[V];
  bool begun = false;
  for (int ky = 0; ky < rows.kernel; ++ky) {
    const int iy = y0 + ky * rows.dilation;
    if (iy < 0 || iy >= rows.in) continue;
    const T* line = x + iy * strides.h;
    for (int kx = 0; kx < columns.kernel; ++kx) {
      const int ix = x0 + kx * columns.dilation;
      if (ix < 0 || ix >= columns.in) continue;
      const Pack<T, V> pack = cuda::load_channels<T, V>(line + ix * strides.w);
      const int number = ky * columns.kernel + kx;
      if (!begun) {  // the first value is the tap even if it is -inf
        begun = true;
#pragma unroll
        for (int v = 0; v < V; ++v) {
          best[v] = -std::numeric_limits<C>::infinity();
          tap[v] = number;
        }
      }
#pragma unroll
      for (int v = 0; v < V; ++v) {
        const C value = cuda::widen(pack.values[v]);
        const bool wins = value > best[v] || value != value;
        best[v] = wins ? value : best[v];
        tap[v] = wins ? number : tap[v];
      }
    }
  }
  if (!begun) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      best[v] = -std::numeric_limits<C>::infinity();
      tap[v] = 0;
    }
  }
  Pack<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.values[v] = cuda::narrow<T>(best[v]);
  cuda::store_channels<T, V>(y + position * V, out);
  if (taps == nullptr) return;
  Pack<Tap, V> numbers;
#pragma unroll
  for (int v = 0; v < V; ++v) numbers.values[v] = static_cast<Tap>(tap[v]);
  cuda::store_channels<Tap, V>(taps + position * V, numbers);
}

// dx of a pixel: dy of the windows whose tap it is, in the order of the windows.
template <class T, class Tap, int V>
__global__ void __launch_bounds__(kPoolThreads)
    max_backward_kernel(T* dx, const T* dy, const Tap* taps, const PoolIndex index,
                        const PoolAxis rows, const PoolAxis columns, const ImageStrides strides) {
  using C = Compute<T>;
  const int64_t position = static_cast<int64_t>(blockIdx.x) * kPoolThreads + threadIdx.x;
  if (position >= index.count) return;
  const PoolIndex::At at = index.at(position);
  const int64_t channel = static_cast<int64_t>(at.pack) * V;
  const int64_t channels = static_cast<int64_t>(index.packs) * V;
  dy += at.image * strides.n + channel;
  taps += at.image * rows.out * columns.out * channels + channel;
  int top;
  int bottom;
  int left;
  int right;
  rows.windows(at.y, (rows.kernel - 1) * rows.dilation + 1, top, bottom);
  columns.windows(at.x, (columns.kernel - 1) * columns.dilation + 1, left, right);
  C sum[V] = {};
  for (int oy = top; oy <= bottom; ++oy) {
    const int dy_rows = at.y - rows.start(oy);
    const int ky = static_cast<int>(rows.steps.divide(dy_rows));
    if (ky * rows.dilation != dy_rows) continue;
    for (int ox = left; ox <= right; ++ox) {
      const int dx_columns = at.x - columns.start(ox);
      const int kx = static_cast<int>(columns.steps.divide(dx_columns));
      if (kx * columns.dilation != dx_columns) continue;
      const auto number = static_cast<Tap>(ky * columns.kernel + kx);
      const int64_t window = static_cast<int64_t>(oy) * columns.out + ox;
      const Pack<Tap, V> numbers = cuda::load_channels<Tap, V>(taps + window * channels);
      const Pack<T, V> pack = cuda::load_channels<T, V>(dy + oy * strides.h + ox * strides.w);
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (numbers.values[v] == number) sum[v] += cuda::widen(pack.values[v]);
    }
  }
  Pack<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.values[v] = cuda::narrow<T>(sum[v]);
  cuda::store_channels<T, V>(dx + position * V, out);
}

// --- launchers

// Packs of 16 bytes fit; then smaller ones do.
template <class T>
bool packs_fit(const PoolGeometry& g, const ImageStrides& strides, const T* image, const T* result,
               const void* taps) {
  constexpr int width = cuda::kPackSize<T>;
  return g.channels % width == 0 && strides.align(image, width) &&
         reinterpret_cast<uintptr_t>(result) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(taps) % 16 == 0;
}

// Channels a thread: 16 bytes of x or of taps, whichever are fewer.
template <class T, class Tap>
constexpr int pack_width() {
  return std::min(cuda::kPackSize<T>, cuda::kPackSize<Tap>);
}

template <class T, class Tap>
void run_max(const MaxPool2dArgs<T>& a, Tap* taps, const Stream& stream) {
  constexpr int width = pack_width<T, Tap>();
  const ImageStrides strides(a.x.layout);
  const bool packed = packs_fit<T>(a.g, strides, a.x.data, a.y.data, taps);
  const PoolIndex index(a.g.images, a.g.out, a.g.channels / (packed ? width : 1));
  cuda::launch(stream, {index.blocks(), kPoolThreads},
               packed ? max_kernel<T, Tap, width> : max_kernel<T, Tap, 1>, a.y.data, taps, a.x.data,
               index, cuda::rows(a.g), cuda::columns(a.g), strides);
}

template <class T, class Tap>
void run_backward(const MaxPool2dBackwardArgs<T>& a, const Tap* taps, const Stream& stream) {
  constexpr int width = pack_width<T, Tap>();
  const ImageStrides strides(a.dy.layout);
  const bool packed = packs_fit<T>(a.g, strides, a.dy.data, a.dx.data, taps);
  const PoolIndex index(a.g.images, a.g.in, a.g.channels / (packed ? width : 1));
  cuda::launch(stream, {index.blocks(), kPoolThreads},
               packed ? max_backward_kernel<T, Tap, width> : max_backward_kernel<T, Tap, 1>,
               a.dx.data, a.dy.data, taps, index, cuda::rows(a.g), cuda::columns(a.g), strides);
}

}  // namespace

template <class T>
static void kernel(const MaxPool2dArgs<T>& a, const Stream& stream) {
  if (a.y.numel() == 0) return;
  if (a.taps32.data != nullptr)
    run_max<T, int32_t>(a, a.taps32.data, stream);
  else
    run_max<T, uint8_t>(a, a.taps8.data, stream);
}

template <class T>
static void kernel(const MaxPool2dBackwardArgs<T>& a, const Stream& stream) {
  if (a.dx.numel() == 0) return;
  if (a.taps32.data != nullptr)
    run_backward<T, int32_t>(a, a.taps32.data, stream);
  else
    run_backward<T, uint8_t>(a, a.taps8.data, stream);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(MaxPool2dArgs)
GABLE_CUDA_KERNEL_FLOATS(MaxPool2dBackwardArgs)
