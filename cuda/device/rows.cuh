// SPDX-License-Identifier: Apache-2.0
// Rows held in registers: how many threads share one, and the loads and stores of their pieces.
#pragma once

#include <bit>
#include <cstdint>

#include "device/numeric.cuh"
#include "device/reduce.cuh"
#include "device/strided.cuh"
#include "runtime/launch.hpp"

namespace gable::cuda {

inline constexpr int kRowThreads = 512;  // most threads that share a row; more would spill

/// `lanes` neighbouring threads a row: parts of a warp, or a whole block.
struct RowGroups {
  int lanes;
  unsigned threads;
  unsigned blocks;

  /// Each thread holds up to `values` of a row's `length`; length <= values * kRowThreads.
  RowGroups(int64_t rows, int64_t length, int values) {
    const int64_t needed = (length + values - 1) / values;
    lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(needed > 0 ? needed : 1)));
    threads = lanes <= kWarp ? 256U : static_cast<unsigned>(lanes);
    blocks = blocks_for(rows, threads / static_cast<unsigned>(lanes));
  }
};

/// The row of this thread and its place in it.
struct RowPlace {
  int64_t row;
  int lane;
  __device__ explicit RowPlace(int lanes)
      : row(static_cast<int64_t>(blockIdx.x) * (static_cast<int>(blockDim.x) / lanes) +
            static_cast<int>(threadIdx.x) / lanes),
        lane(static_cast<int>(threadIdx.x) % lanes) {}
};

/// E values of a row in packs of V: element(p) is the first of pack p, in steps of `lanes` packs.
template <class T, int V, int E>
struct RowPiece {
  static constexpr int kPacks = E / V;
  static_assert(E % V == 0);
  Pack<T, V> packs[kPacks];

  __device__ static __forceinline__ int64_t element(int p, int lane, int lanes) {
    return static_cast<int64_t>(p * lanes + lane) * V;
  }
  /// Elements from `length` on are `fill`. Packs (V > 1) are of whole rows of stride 1.
  __device__ __forceinline__ void load(const T* row, int64_t step, int64_t length, int lane,
                                       int lanes, T fill) {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int64_t i = element(p, lane, lanes);
      if (i < length) {
        packs[p] = *reinterpret_cast<const Pack<T, V>*>(row + (V > 1 ? i : i * step));
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v) packs[p].values[v] = fill;
      }
    }
  }
  __device__ __forceinline__ void store(T* row, int64_t step, int64_t length, int lane,
                                        int lanes) const {
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int64_t i = element(p, lane, lanes);
      if (i < length) *reinterpret_cast<Pack<T, V>*>(row + (V > 1 ? i : i * step)) = packs[p];
    }
  }
  __device__ __forceinline__ T& operator[](int e) { return packs[e / V].values[e % V]; }
  __device__ __forceinline__ const T& operator[](int e) const { return packs[e / V].values[e % V]; }
};

/// True where operand k of the loop over rows starts each row at a whole pack.
template <int N>
bool rows_start_packed(const StridedLoop<N>& rows, size_t k, const void* data, int64_t element,
                       int64_t width) {
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element * width) != 0)
    return false;
  for (int d = 0; d < rows.rank(); ++d)
    if (rows.size(d) > 1 && rows.strides(d)[k] % width != 0) return false;
  return true;
}

}  // namespace gable::cuda
