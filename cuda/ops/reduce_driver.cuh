// SPDX-License-Identifier: Apache-2.0
// Reductions of any axes of any strided view: the plan, the split of the work, three kernels.
//
// What is reduced is a policy P:
//   P::Value, P::State           type of x; what a partial result is
//   P::kRows, P::kColumns        values that add() takes at once, states side by side: at most
//   init()                       the state of no values
//   shift(offset)                what belongs to an output
//   add(state, pack, position, step, shift)
//                                values at row-major positions `position`, `position + step`, ...
//   combine(state, state)        two disjoint parts; commutative
//   write(state, out_offset, shift)
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

#include "device/numeric.cuh"
#include "device/reduce.cuh"
#include "device/strided.cuh"
#include "runtime/launch.hpp"
#include "runtime/scratch.hpp"
#include "runtime/sub_layout.hpp"

namespace gable::cuda {

/// Kept axes with strides of x, out and shift; reduced axes with strides of x and of the row-major
/// position among the reduced dimensions. Both in x's order in memory, merged.
struct ReducePlan {
  StridedLoop<3> kept;
  StridedLoop<2> reduced;

  /// `out` and `shift` have x's rank, and size 1 along reduced dimensions.
  ReducePlan(const Layout& x, const Layout& out, const Layout& shift)
      : kept(kept_loop(x, out, shift)), reduced(reduced_loop(x, out)) {}

 private:
  static StridedLoop<3> kept_loop(const Layout& x, const Layout& out, const Layout& shift) {
    auto stays = [&](int d) { return out.shape()[d] == x.shape()[d]; };
    const Layout kept_x = sub_layout(x, stays);
    const Layout kept_out = sub_layout(out, stays);
    const Layout kept_shift = sub_layout(shift, stays);
    return StridedLoop<3>({&kept_x, &kept_out, &kept_shift});
  }
  static StridedLoop<2> reduced_loop(const Layout& x, const Layout& out) {
    const Layout reduced_x = sub_layout(x, [&](int d) { return out.shape()[d] != x.shape()[d]; });
    const Layout positions(reduced_x.shape());
    return StridedLoop<2>({&reduced_x, &positions});
  }
};

inline constexpr int kReduceThreads = 256;
inline constexpr int64_t kReduceBlocks = 4096;  // no output is split to make more
inline constexpr int64_t kReduceLoads = 8;      // of a thread at least before an output is split

/// How the work is cut; depends on shapes, strides and alignment only.
struct ReduceSplit {
  int lanes = 1;           ///< threads an output (rows), packs a block (columns)
  int64_t parts = 1;       ///< pieces that each output's values are split into
  int64_t chunk = 0;       ///< packs (rows) or rows (columns) a part
  int64_t units = 0;       ///< whole packs (rows) or rows (columns) in all
  int tail = 0;            ///< values after the last whole pack
  bool flat = false;       ///< one reduced axis
  Offsets<2> unit_step{};  ///< of x and position, from unit to unit of that axis
  int64_t step = 1;        ///< of row-major positions along a pack
  int64_t out_step = 0;    ///< columns: along a pack
  int64_t shift_step = 0;

  void split(int64_t most, int64_t least_chunk) {
    parts = std::clamp<int64_t>(most, 1, std::max<int64_t>(1, units / least_chunk));
    chunk = (units + parts - 1) / parts;
    parts = chunk > 0 ? (units + chunk - 1) / chunk : 1;
  }
  /// Units are `width` values of the innermost reduced axis.
  void set_steps(const StridedLoop<2>& reduced, int64_t width) {
    flat = reduced.rank() == 1;
    step = reduced.row_strides()[1];
    unit_step = {{reduced.row_strides()[0] * width, step * width}};
  }
};

// --- kernels

/// add(pack, position) of units i, i + stride, ... below end; Unroll loads are in flight.
template <class T, int V, int Unroll, class Index, class F>
__device__ __forceinline__ void visit_units(const T* from, int64_t i, int64_t end, int stride,
                                            const Index& index, const F& add) {
#pragma unroll 1
  for (; i < end; i += Unroll * stride) {
    Pack<T, V> packs[Unroll];
    Offsets<2> offsets[Unroll];
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      offsets[u] = index(i + u * stride);
      if (i + u * stride < end)
        packs[u] = *reinterpret_cast<const Pack<T, V>*>(from + offsets[u].at[0]);
    }
#pragma unroll
    for (int u = 0; u < Unroll; ++u)
      if (i + u * stride < end) add(packs[u], offsets[u].at[1]);
  }
}
template <class T, int V, class F>
__device__ __forceinline__ void visit_units(const T* from, int64_t begin, int64_t end, int stride,
                                            const ReduceSplit& split,
                                            const StridedIndex<2>& reduced, const F& add) {
  if (split.flat)
    visit_units<T, V, V == 1 ? 8 : 4>(
        from, begin, end, stride,
        [&](int64_t i) {
          return Offsets<2>{{i * split.unit_step.at[0], i * split.unit_step.at[1]}};
        },
        add);
  else
    visit_units<T, V, 2>(
        from, begin, end, stride, [&](int64_t i) { return reduced.offsets(i); }, add);
}

/// One output a group of lanes, along the reduced axes. partial[output][part].
template <class P, int V>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_rows_kernel(const P policy, const typename P::Value* x, const StridedIndex<3> kept,
                       const StridedIndex<2> reduced, const ReduceSplit split,
                       typename P::State* partial) {
  using T = typename P::Value;
  const int lane = static_cast<int>(threadIdx.x) % split.lanes;
  const int64_t item = static_cast<int64_t>(blockIdx.x) * (kReduceThreads / split.lanes) +
                       static_cast<int>(threadIdx.x) / split.lanes;
  const bool active = item < kept.count() * split.parts;
  typename P::State state = policy.init();
  Offsets<3> at = {};
  double shift = 0;
  if (active) {
    const int64_t output = split.parts == 1 ? item : item / split.parts;
    const int64_t part = item - output * split.parts;
    at = kept.offsets(output);
    shift = policy.shift(at.at[2]);
    const T* from = x + at.at[0];
    const int64_t end = std::min(split.units, (part + 1) * split.chunk);
    visit_units<T, V>(from, part * split.chunk + lane, end, split.lanes, split, reduced,
                      [&](const Pack<T, V>& pack, int64_t position) {
                        policy.add(state, pack, position, split.step, shift);
                      });
    if (V > 1 && part == split.parts - 1) {  // one dense axis
      for (int t = lane; t < split.tail; t += split.lanes) {
        const int64_t position = split.units * V + t;
        policy.add(state, Pack<T, 1>{{from[position]}}, position * split.step, split.step, shift);
      }
    }
  }
  state = group_reduce(
      state, [&](const auto& a, const auto& b) { return policy.combine(a, b); }, split.lanes);
  if (!active || lane != 0) return;
  if (partial != nullptr)
    partial[item] = state;
  else
    policy.write(state, at.at[1], shift);
}

/// Neighbouring outputs side by side, V a thread; blockIdx.y is the part. partial[part][output].
template <class P, int V>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_columns_kernel(const P policy, const typename P::Value* x, const StridedIndex<3> kept,
                          const StridedIndex<2> reduced, const ReduceSplit split,
                          typename P::State* partial) {
  using T = typename P::Value;
  using State = typename P::State;
  __shared__ alignas(16) unsigned char memory[sizeof(State) * V * kReduceThreads];
  State* shared = reinterpret_cast<State*>(memory);  // [V][thread]
  const int lane = static_cast<int>(threadIdx.x) % split.lanes;
  const int line = static_cast<int>(threadIdx.x) / split.lanes;
  const int height = kReduceThreads / split.lanes;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * split.lanes + lane;
  const int64_t part = blockIdx.y;
  const bool active = column < kept.count();
  State states[V];
  double shifts[V];
  Offsets<3> at = {};
#pragma unroll
  for (int v = 0; v < V; ++v) {
    states[v] = policy.init();
    shifts[v] = 0;
  }
  if (active) {
    at = kept.offsets(column);
#pragma unroll
    for (int v = 0; v < V; ++v) shifts[v] = policy.shift(at.at[2] + v * split.shift_step);
    const int64_t end = std::min(split.units, (part + 1) * split.chunk);
    visit_units<T, V>(x + at.at[0], part * split.chunk + line, end, height, split, reduced,
                      [&](const Pack<T, V>& pack, int64_t position) {
#pragma unroll
                        for (int v = 0; v < V; ++v)
                          policy.add(states[v], Pack<T, 1>{{pack.values[v]}}, position, 0,
                                     shifts[v]);
                      });
  }
#pragma unroll
  for (int v = 0; v < V; ++v) shared[v * kReduceThreads + threadIdx.x] = states[v];
  for (int half = height / 2; half > 0; half /= 2) {
    __syncthreads();
    if (line >= half) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      State* mine = shared + v * kReduceThreads + threadIdx.x;
      *mine = policy.combine(*mine, mine[half * split.lanes]);
    }
  }
  if (!active || line != 0) return;
#pragma unroll
  for (int v = 0; v < V; ++v) {
    const State& state = shared[v * kReduceThreads + threadIdx.x];
    if (partial != nullptr)
      partial[part * (kept.count() * V) + column * V + v] = state;
    else
      policy.write(state, at.at[1] + v * split.out_step, shifts[v]);
  }
}

/// Combines the parts of each output: partial[output * output_step + part * part_step].
template <class P>
__global__ void __launch_bounds__(kReduceThreads)
    reduce_finish_kernel(const P policy, const typename P::State* partial,
                         const StridedIndex<3> kept, const int lanes, const int64_t parts,
                         const int64_t output_step, const int64_t part_step) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int64_t output = static_cast<int64_t>(blockIdx.x) * (kReduceThreads / lanes) +
                         static_cast<int>(threadIdx.x) / lanes;
  const bool active = output < kept.count();
  typename P::State state = policy.init();
  if (active) {
#pragma unroll 4
    for (int64_t p = lane; p < parts; p += lanes)
      state = policy.combine(state, partial[output * output_step + p * part_step]);
  }
  state = group_reduce(
      state, [&](const auto& a, const auto& b) { return policy.combine(a, b); }, lanes);
  if (!active || lane != 0) return;
  const Offsets<3> at = kept.offsets(output);
  policy.write(state, at.at[1], policy.shift(at.at[2]));
}

// --- launchers

template <class P>
class ReduceLauncher {
  using T = typename P::Value;
  using State = typename P::State;
  static constexpr int kRowPack = std::min(kPackSize<T>, P::kRows);
  static constexpr int kColumnPack = std::min(kPackSize<T>, P::kColumns);

 public:
  ReduceLauncher(const Stream& stream, const ReducePlan& plan, const T* x, const P& policy)
      : stream_(stream), plan_(plan), x_(x), policy_(policy) {}

  void run() {
    const int64_t count = plan_.reduced.numel();
    if (plan_.kept.numel() == 0) return;
    if (count == 0) return finish(nullptr, 0, 0, 0);
    const int64_t kept_step = std::abs(plan_.kept.row_strides()[0]);
    const int64_t reduced_step = std::abs(plan_.reduced.row_strides()[0]);
    if (count == 1 || (plan_.kept.numel() > 1 && kept_step <= reduced_step)) {
      if (kColumnPack > 1 && columns_fit())
        columns<kColumnPack>();
      else
        columns<1>();
    } else {
      if (kRowPack > 1 && rows_fit())
        rows<kRowPack>();
      else
        rows<1>();
    }
  }

 private:
  // All of x's steps but `dense`, the innermost of one loop, are whole packs, and so is the start.
  [[nodiscard]] bool aligned(int64_t width, bool kept_is_dense) const {
    if (reinterpret_cast<uintptr_t>(x_) % (sizeof(T) * static_cast<size_t>(width)) != 0)
      return false;
    auto whole = [width](const auto& loop, bool dense) {
      const int last = loop.rank() - 1;
      for (int d = 0; d <= last; ++d)
        if (loop.size(d) > 1 && !(dense && d == last) && loop.strides(d)[0] % width != 0)
          return false;
      return true;
    };
    return whole(plan_.kept, kept_is_dense) && whole(plan_.reduced, !kept_is_dense);
  }
  [[nodiscard]] bool rows_fit() const {
    const auto& loop = plan_.reduced;
    return loop.row_strides()[0] == 1 &&
           (loop.rank() == 1 ? loop.numel() >= kRowPack : loop.row_length() % kRowPack == 0) &&
           aligned(kRowPack, false);
  }
  [[nodiscard]] bool columns_fit() const {
    const auto& loop = plan_.kept;
    return loop.row_strides()[0] == 1 && loop.row_length() % kColumnPack == 0 &&
           aligned(kColumnPack, true);
  }

  template <int V>
  void rows() {
    const int64_t outputs = plan_.kept.numel();
    const StridedIndex<2> reduced(plan_.reduced, V);
    ReduceSplit split;
    split.units = reduced.count();
    if (plan_.reduced.rank() == 1) split.tail = static_cast<int>(plan_.reduced.numel() % V);
    split.set_steps(plan_.reduced, V);
    constexpr int64_t enough = 32768;  // threads that fill a device
    split.lanes = split.units > 256
                      ? kReduceThreads
                      : std::min(kWarp, static_cast<int>(std::bit_ceil(
                                            static_cast<uint64_t>((split.units + 3) / 4))));
    while (split.lanes < kWarp && split.lanes < split.units && outputs * split.lanes < enough)
      split.lanes *= 2;
    if (split.lanes == kWarp && split.units > 2 * kWarp && outputs * kWarp < enough)
      split.lanes = kReduceThreads;
    split.split(split.lanes == kReduceThreads ? kReduceBlocks / outputs : 1,
                kReduceThreads * kReduceLoads);
    const Scratch<State> partial(split.parts > 1 ? split.parts * outputs : 0, stream_);
    const unsigned blocks = blocks_for(outputs * split.parts, kReduceThreads / split.lanes);
    launch(stream_, {blocks, kReduceThreads}, reduce_rows_kernel<P, V>, policy_, x_,
           StridedIndex<3>(plan_.kept), reduced, split, split.parts > 1 ? partial.data() : nullptr);
    if (split.parts > 1) finish(partial.data(), split.parts, split.parts, 1);
  }

  template <int V>
  void columns() {
    const int64_t outputs = plan_.kept.numel();
    const int64_t packs = outputs / V;
    ReduceSplit split;
    split.units = plan_.reduced.numel();
    split.set_steps(plan_.reduced, 1);
    split.out_step = plan_.kept.row_strides()[1];
    split.shift_step = plan_.kept.row_strides()[2];
    split.lanes =
        packs < kWarp ? static_cast<int>(std::bit_ceil(static_cast<uint64_t>(packs))) : kWarp;
    while (split.lanes < kReduceThreads && split.lanes < packs &&
           kReduceThreads / split.lanes > split.units)
      split.lanes *= 2;
    const unsigned blocks = blocks_for(packs, split.lanes);
    split.split(std::min<int64_t>(1024, kReduceBlocks / blocks),
                kReduceThreads / split.lanes * kReduceLoads);
    const Scratch<State> partial(split.parts > 1 ? split.parts * outputs : 0, stream_);
    launch(stream_, {{blocks, static_cast<unsigned>(split.parts)}, kReduceThreads},
           reduce_columns_kernel<P, V>, policy_, x_, StridedIndex<3>(plan_.kept, V),
           StridedIndex<2>(plan_.reduced), split, split.parts > 1 ? partial.data() : nullptr);
    if (split.parts > 1) finish(partial.data(), split.parts, 1, outputs);
  }

  void finish(const State* partial, int64_t parts, int64_t output_step, int64_t part_step) {
    const int lanes = parts <= 4 ? 1 : parts <= 128 ? kWarp : kReduceThreads;
    launch(stream_, {blocks_for(plan_.kept.numel(), kReduceThreads / lanes), kReduceThreads},
           reduce_finish_kernel<P>, policy_, partial, StridedIndex<3>(plan_.kept), lanes, parts,
           output_step, part_step);
  }

  const Stream& stream_;
  const ReducePlan& plan_;
  const T* x_;
  const P& policy_;
};

/// Reduces x, whose layout the plan was made of, at `x`.
template <class P>
void reduce(const Stream& stream, const ReducePlan& plan, const typename P::Value* x,
            const P& policy) {
  ReduceLauncher<P>(stream, plan, x, policy).run();
}

}  // namespace gable::cuda
