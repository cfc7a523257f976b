// SPDX-License-Identifier: Apache-2.0
// Batch norm on a grid of channels and pixels. One set of kernels serves every layout: where
// channels are adjacent (channels-last, 2-d) a block covers packs of channels and a few pixels at
// once; elsewhere it covers 256 pixels of one channel. Included by a file a direction.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "gable/ops/batch_norm.hpp"
#include "kernel.hpp"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"

namespace gable::cuda {

inline constexpr int kNormThreads = 256;

/// Where the elements of N views of one call are, and which of them a block takes: `rows` pixels
/// of blockDim.x packs of channels. Blocks are numbered by chunk of pixels, then tile of channels.
template <int N>
struct NormGrid {
  StridedIndex<N> pixels;
  int64_t channel_strides[N];
  int64_t channels;
  int64_t count;  ///< pixels
  int64_t rows;
  unsigned tiles;
  int64_t chunks;
  dim3 threads;
  bool packed;  ///< channels in packs of 16 bytes, else one by one

  [[nodiscard]] Grid grid() const { return {blocks_for(chunks * tiles, 1), threads}; }
};

/// Sizes of a NormGrid. They depend on shapes only, so results do, too.
struct NormSplit {
  int64_t least;   ///< pixels a thread
  int64_t most;    ///< pixels a thread
  int64_t blocks;  ///< wanted in all
};

/// The pixels of a (N, C, ...) layout: its dimensions but the channels'.
inline Layout without_channels(const Layout& layout) {
  Shape shape = layout.shape();
  Strides strides = layout.strides();
  shape.erase(1);
  strides.erase(1);
  return Layout(shape, strides, 0, "batch_norm");
}

/// `addresses` decide, with the strides, whether packs of `width` elements of T fit.
template <class T, int N>
NormGrid<N> norm_grid(const std::array<const Layout*, N>& layouts,
                      const std::array<const void*, N>& addresses, const NormSplit& split) {
  constexpr int64_t width = kPackSize<T>;
  std::array<Layout, N> pixels;
  std::array<const Layout*, N> pointers;
  for (size_t k = 0; k < N; ++k) {
    pixels[k] = without_channels(*layouts[k]);
    pointers[k] = &pixels[k];
  }
  const StridedLoop<N> loop(pointers);
  NormGrid<N> g{StridedIndex<N>(loop), {}, layouts[0]->shape()[1], loop.numel(), 1, 1, 0, {}, true};
  g.packed = g.channels % width == 0;
  for (size_t k = 0; k < N; ++k) {
    g.channel_strides[k] = layouts[k]->strides()[1];
    g.packed &= g.channel_strides[k] == 1 && reinterpret_cast<uintptr_t>(addresses[k]) % 16 == 0;
    for (int d = 0; d < loop.rank(); ++d)
      g.packed &= loop.size(d) == 1 || loop.strides(d)[k] % width == 0;
  }
  const bool inner = g.packed || loop.row_length() == 1 ||
                     std::abs(g.channel_strides[0]) < std::abs(loop.row_strides()[0]);
  const int64_t packs = g.packed ? g.channels / width : g.channels;
  const auto across = inner ? static_cast<unsigned>(std::bit_ceil(
                                  static_cast<uint64_t>(std::clamp<int64_t>(packs, 1, 32))))
                            : 1U;
  g.threads = dim3(across, kNormThreads / across);
  g.tiles = blocks_for(packs, across);
  const int64_t lanes = g.threads.y;
  const int64_t a_thread = (g.count * g.tiles + split.blocks * lanes - 1) / (split.blocks * lanes);
  g.rows = std::clamp(a_thread, split.least, split.most) * lanes;
  g.chunks = (g.count + g.rows - 1) / g.rows;
  return g;
}

/// A thread's place in a NormGrid.
template <int N, int V>
struct NormPlace {
  int64_t chunk;
  int64_t channel;  ///< first of V
  int64_t row;      ///< first pixel; the next is blockDim.y further
  int64_t end;
  __device__ __forceinline__ explicit NormPlace(const NormGrid<N>& g)
      : chunk(blockIdx.x / g.tiles),
        channel((static_cast<int64_t>(blockIdx.x % g.tiles) * blockDim.x + threadIdx.x) * V) {
    const int64_t begin = chunk * g.rows;
    row = begin + threadIdx.y;
    end = begin + g.rows < g.count ? begin + g.rows : g.count;
    if (channel >= g.channels) row = end;
  }
};

template <class T, int V>
__device__ __forceinline__ Pack<T, V> load_pack(const T* from) {
  return *reinterpret_cast<const Pack<T, V>*>(from);
}
template <class T, int V>
__device__ __forceinline__ void store_pack(T* to, const Pack<T, V>& pack) {
  *reinterpret_cast<Pack<T, V>*>(to) = pack;
}

/// A double as the sum of two values of C, so that x - mean keeps the digits that a mean far from
/// 0 would cost.
template <class C>
struct TwoPart {
  C high;
  C low;
  TwoPart() = default;
  __device__ __forceinline__ explicit TwoPart(double value)
      : high(static_cast<C>(value)), low(static_cast<C>(value - static_cast<double>(high))) {}
  /// x - value.
  __device__ __forceinline__ C from(C x) const { return (x - high) - low; }
};

/// Two sums of one channel: of a chunk in scratch memory, (chunks, C).
struct alignas(16) TwoSums {
  double first;
  double second;
};

/// Sums over threadIdx.y; threads of row 0 get the results.
template <int V>
__device__ __forceinline__ void sum_rows(double (&first)[V], double (&second)[V]) {
  __shared__ double shared[2][V][kNormThreads];
  const unsigned thread = threadIdx.y * blockDim.x + threadIdx.x;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    shared[0][v][thread] = first[v];
    shared[1][v][thread] = second[v];
  }
  for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y >= half) continue;
    const unsigned other = thread + half * blockDim.x;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      shared[0][v][thread] = first[v] += shared[0][v][other];
      shared[1][v][thread] = second[v] += shared[1][v][other];
    }
  }
}

// Combining chunks: a block is kFinishChannels channels by kFinishLanes chunks at once.
inline constexpr int kFinishChannels = 8;
inline constexpr int kFinishLanes = 64;

inline Grid finish_grid(int64_t channels) {
  return {blocks_for(channels, kFinishChannels), dim3(kFinishChannels, kFinishLanes)};
}

/// Sum over threadIdx.y, which every thread gets.
__device__ __forceinline__ double sum_lanes(double value) {
  __shared__ double shared[kFinishLanes][kFinishChannels];
  __syncthreads();  // an earlier call may still be reading
  shared[threadIdx.y][threadIdx.x] = value;
  for (int half = kFinishLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.y < half)
      shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
  }
  __syncthreads();
  return shared[0][threadIdx.x];
}

}  // namespace gable::cuda
