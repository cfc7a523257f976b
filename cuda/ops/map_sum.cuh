// SPDX-License-Identifier: Apache-2.0
// map_sum(): the sum over all elements of a function of up to three operands, in double.
#pragma once

#include <algorithm>
#include <cstdint>

#include "device/elementwise.cuh"
#include "device/reduce.cuh"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"

namespace gable::cuda {

inline constexpr int kMapSumThreads = 256;
inline constexpr int64_t kMapSumBlocks = 4096;
inline constexpr int64_t kMapSumPacks = 8;  // of a thread at least before there are more blocks

/// partial[block] = sum of f over the units (packs of V, and the tail) of the block.
template <class E, class Value, int V>
__global__ void __launch_bounds__(kMapSumThreads)
    map_sum_kernel(const typename E::Function f, const Addresses<E::kOperands> addresses,
                   const StridedIndex<E::kOperands> index, const uint32_t broadcast,
                   const int64_t units, const int tail, const int64_t chunk, double* partial) {
  constexpr int unroll = 4;
  double total = 0;
  auto add = [&]<int W>(const typename E::template InSlots<W>& in) {
    typename E::template OutSlots<W> out;
    E::template compute<W>(f, out, in);
    const auto& values =
        static_cast<const typename E::template Slot<0, Value, W>&>(out).pack.values;
#pragma unroll
    for (int v = 0; v < W; ++v) total += static_cast<double>(values[v]);
  };
  const int64_t begin = int64_t{blockIdx.x} * chunk;
  const int64_t end = std::min(units, begin + chunk);
#pragma unroll 1
  for (int64_t i = begin + threadIdx.x; i < end; i += unroll * kMapSumThreads) {
    typename E::template InSlots<V> in[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (i + u * kMapSumThreads < end)
        in[u].load(addresses, index.offsets(i + u * kMapSumThreads), broadcast);
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      if (i + u * kMapSumThreads < end) add.template operator()<V>(in[u]);
  }
  if (V > 1 && blockIdx.x == gridDim.x - 1 && threadIdx.x < tail) {
    Offsets<E::kOperands> o;
#pragma unroll
    for (int k = 0; k < E::kOperands; ++k)
      o.at[k] = ((broadcast >> k) & 1U) != 0 ? 0 : units * V + threadIdx.x;
    typename E::template InSlots<1> in;
    in.load(addresses, o, 0);
    add.template operator()<1>(in);
  }
  total = block_reduce(total, Add{});
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

/// out = the sum of n partial sums, times `scale`.
template <class Out>
__global__ void __launch_bounds__(kMapSumThreads)
    sum_partials_kernel(const double* partial, const int64_t n, const double scale, Out* out) {
  double total = 0;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < n; i += kMapSumThreads) total += partial[i];
  total = block_reduce(total, Add{});
  if (threadIdx.x == 0) *out = static_cast<Out>(total * scale);
}

/// *out = scale * sum of value over all elements, where f(value, operands...) gives a Value; the
/// first address and layout of the loop, the place of a result, are not used.
template <class Value, class Ins, class Out, int N, class F>
void map_sum(const Stream& stream, const StridedLoop<N>& loop, Addresses<N> addresses, const F& f,
             double scale, Out* out) {
  using E = Elementwise<F, TypeList<Value>, Ins>;
  static_assert(E::kOperands == N);
  addresses.at[0] = nullptr;
  const auto sizes = []<class... I>(TypeList<I...>) {
    return std::array<int64_t, static_cast<size_t>(N)>{1, static_cast<int64_t>(sizeof(I))...};
  }(Ins{});
  uint32_t broadcast = 0;
  const bool packed =
      loop.numel() > 0 && packs_fit(loop, addresses, sizes.data(), 1, E::kWidth, broadcast);
  const int width = packed ? E::kWidth : 1;
  if (!packed) broadcast = 0;
  const int64_t units = loop.numel() / width;
  const int tail = static_cast<int>(loop.numel() % width);
  const int64_t least = kMapSumThreads * kMapSumPacks;
  const int64_t blocks = std::clamp<int64_t>((units + least - 1) / least, 1, kMapSumBlocks);
  const int64_t chunk = (units + blocks - 1) / blocks;
  const Scratch<double> partial(blocks, stream);
  if (loop.numel() > 0) {
    const Grid grid{static_cast<unsigned>(blocks), kMapSumThreads};
    const StridedIndex<N> index(loop, width);
    if (packed)
      launch(stream, grid, map_sum_kernel<E, Value, E::kWidth>, f, addresses, index, broadcast,
             units, tail, chunk, partial.data());
    else
      launch(stream, grid, map_sum_kernel<E, Value, 1>, f, addresses, index, broadcast, units, tail,
             chunk, partial.data());
  }
  launch(stream, {1, kMapSumThreads}, sum_partials_kernel<Out>, partial.data(),
         loop.numel() > 0 ? blocks : 0, scale, out);
}

}  // namespace gable::cuda
