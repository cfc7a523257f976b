// SPDX-License-Identifier: Apache-2.0
// Integer products, which no library wraps around: square tiles in shared memory, any strides.
#include <algorithm>
#include <type_traits>

#include "gemm/gemm.hpp"
#include "runtime/launch.hpp"

namespace gable::cuda {

namespace {

constexpr int kTile = 16;
constexpr int64_t kBatchLimit = 65535;  // of gridDim.y

// Unsigned, so that overflow is defined; narrow types wrap when they are stored.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
__global__ void __launch_bounds__(kTile* kTile) integer_kernel(const Gemm<T, T> g) {
  using W = Wrapping<T>;
  __shared__ W tile_a[kTile][kTile + 1];
  __shared__ W tile_b[kTile][kTile + 1];
  const int64_t tiles_n = (g.n + kTile - 1) / kTile;
  const int tx = threadIdx.x % kTile;
  const int ty = threadIdx.x / kTile;
  const int64_t row = blockIdx.x / tiles_n * kTile + ty;
  const int64_t col = blockIdx.x % tiles_n * kTile + tx;
  const int64_t batch = blockIdx.y;
  const T* a = g.a.data + batch * g.a.step;
  const T* b = g.b.data + batch * g.b.step;
  W sum = 0;
  for (int64_t k = 0; k < g.k; k += kTile) {
    tile_a[ty][tx] =
        row < g.m && k + tx < g.k ? static_cast<W>(a[row * g.a.rs + (k + tx) * g.a.cs]) : W{0};
    tile_b[ty][tx] =
        col < g.n && k + ty < g.k ? static_cast<W>(b[(k + ty) * g.b.rs + col * g.b.cs]) : W{0};
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kTile; ++i) sum += tile_a[ty][i] * tile_b[i][tx];
    __syncthreads();
  }
  if (row >= g.m || col >= g.n) return;
  if (g.bias.data != nullptr)
    sum += static_cast<W>(g.bias.data[batch * g.bias.step + col * g.bias.stride]);
  T& out = g.out.data[batch * g.out.step + row * g.out.rs + col * g.out.cs];
  if (g.accumulate) sum += static_cast<W>(out);
  out = static_cast<T>(sum);
}

}  // namespace

template <class T>
void integer_gemm(const Gemm<T, T>& product, const Stream& stream) {
  const int64_t tiles = (product.m + kTile - 1) / kTile * ((product.n + kTile - 1) / kTile);
  for (int64_t first = 0; first < product.batch; first += kBatchLimit) {
    Gemm<T, T> part = product;
    part.batch = std::min(kBatchLimit, product.batch - first);
    part.a.data += first * product.a.step;
    part.b.data += first * product.b.step;
    part.out.data += first * product.out.step;
    if (part.bias.data != nullptr) part.bias.data += first * product.bias.step;
    launch(stream,
           {dim3(blocks_for(tiles, 1), static_cast<unsigned>(part.batch)), dim3(kTile * kTile)},
           integer_kernel<T>, part);
  }
}

template void integer_gemm<int32_t>(const Gemm<int32_t, int32_t>&, const Stream&);
template void integer_gemm<int64_t>(const Gemm<int64_t, int64_t>&, const Stream&);
template void integer_gemm<uint8_t>(const Gemm<uint8_t, uint8_t>&, const Stream&);

}  // namespace gable::cuda
