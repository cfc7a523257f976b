// SPDX-License-Identifier: Apache-2.0
// What softmax and cross-entropy share: lines along one dimension of equally shaped views, and
// running sums of exponentials.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>

#include "device/numeric.cuh"
#include "device/reduce.cuh"
#include "device/rows.cuh"
#include "device/strided.cuh"
#include "gable/ops/math.hpp"
#include "runtime/sub_layout.hpp"

namespace gable::cuda {

/// Lines along `dim`, one element each, in the memory order of the first layout.
template <int N>
StridedLoop<N> line_loop(const std::array<const Layout*, N>& layouts, int dim) {
  std::array<Layout, N> rest;
  std::array<const Layout*, N> pointers{};
  for (size_t k = 0; k < N; ++k) {
    rest[k] = sub_layout(*layouts[k], [dim](int d) { return d != dim; });
    pointers[k] = &rest[k];
  }
  return StridedLoop<N>(pointers);
}
/// True where neighbouring lines lie nearer in memory than the elements of a line, `step` apart.
template <int N>
bool side_by_side(const StridedLoop<N>& lines, int64_t step) {
  return lines.row_length() > 1 && std::abs(lines.row_strides()[0]) < std::abs(step);
}

inline constexpr int kLineThreads = 512;

/// How a block of kLineThreads is divided. `side` > 1, then at least a warp: that many neighbouring
/// lines, thread t at line t % side. Else `lanes` neighbouring threads a line: parts of a warp, or
/// the block.
struct LineSplit {
  int side = 1;
  int lanes = kLineThreads;

  /// For lines along memory of `units` packs.
  [[nodiscard]] static LineSplit along(int64_t units) {
    const auto quarter = static_cast<uint64_t>((units + 3) / 4);
    return {1, units > 16 * kWarp ? kLineThreads
                                  : std::min(kWarp, static_cast<int>(std::bit_ceil(quarter)))};
  }
  /// For lines that lie side by side: fewer if they are long, so that more threads share one.
  [[nodiscard]] static LineSplit across(int64_t length) {
    LineSplit split{kLineThreads, 1};
    while (split.side > kWarp && length * split.side > 8 * kLineThreads) split.side /= 2;
    return split;
  }
  [[nodiscard]] int lines() const { return side > 1 ? side : kLineThreads / lanes; }
};

/// The line of this thread and its elements there: first, first + stride, ... in packs.
struct LinePlace {
  int64_t line;
  int64_t first;
  int64_t stride;
  __device__ explicit LinePlace(const LineSplit& split) {
    const auto t = static_cast<int>(threadIdx.x);
    const auto block = static_cast<int64_t>(blockIdx.x);
    if (split.side > 1) {
      line = block * split.side + t % split.side;
      first = t / split.side;
      stride = kLineThreads / split.side;
    } else {
      line = block * (kLineThreads / split.lanes) + t / split.lanes;
      first = t % split.lanes;
      stride = split.lanes;
    }
  }
};

/// Combines the values of the threads of each line; all of them get the result.
template <class S, class F>
__device__ __forceinline__ S line_reduce(const S& value, const F& combine, const LineSplit& split) {
  if (split.side == 1) return group_reduce(value, combine, split.lanes);
  __shared__ alignas(16) unsigned char memory[kLineThreads * sizeof(S)];
  S* shared = reinterpret_cast<S*>(memory);
  __syncthreads();  // an earlier call may still be reading
  shared[threadIdx.x] = value;
  __syncthreads();
  const int line = static_cast<int>(threadIdx.x) % split.side;
  S result = shared[line];
  for (int t = line + split.side; t < kLineThreads; t += split.side)
    result = combine(result, shared[t]);
  return result;
}

template <class C>
__device__ __forceinline__ constexpr C infinity() {
  return std::numeric_limits<C>::infinity();
}

/// exp for values of type T: 16-bit results need no more than the device's instruction.
template <class T>
__device__ __forceinline__ Compute<T> exp_of(Compute<T> x) {
  if constexpr (SmallFloat<T>)
    return __expf(x);
  else
    return math::exp(x);
}

/// sum(exp(x - shift_of(top))) with the largest value so far, which may have passed over NaN; the
/// sum has not. +inf makes the sum NaN, or with InfinityCounts infinite.
template <class T, bool InfinityCounts = false>
struct ExpSum {
  using C = Compute<T>;
  C top = -infinity<C>();
  double sum = 0;

  template <int V>
  __device__ __forceinline__ void add(const Pack<T, V>& pack) {
    C values[V];
    C larger = top;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      values[v] = widen(pack.values[v]);
      larger = Larger{}(larger, values[v]);
    }
    const C shift = shift_of(larger);
    if (larger != top) sum *= static_cast<double>(exp_of<T>(top - shift));
    top = larger;
    C part = 0;
#pragma unroll
    for (int v = 0; v < V; ++v) part += exp_of<T>(values[v] - shift);
    sum += static_cast<double>(part);
  }
  __device__ __forceinline__ ExpSum with(const ExpSum& other) const {
    const C larger = Larger{}(top, other.top);
    const C shift = shift_of(larger);
    return {larger, sum * static_cast<double>(exp_of<T>(top - shift)) +
                        other.sum * static_cast<double>(exp_of<T>(other.top - shift))};
  }
  /// -inf alone must not become NaN.
  __device__ static __forceinline__ C shift_of(C top) { return top == -infinity<C>() ? C(0) : top; }
};

}  // namespace gable::cuda
