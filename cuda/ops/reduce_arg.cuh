// SPDX-License-Identifier: Apache-2.0
// argmax and argmin; included by a file for each.
#pragma once

#include "gable/ops/reduce.hpp"
#include "kernel.hpp"
#include "reduce_driver.cuh"

namespace gable {
namespace cuda {

/// The first extreme value and its row-major position, in whatever order values come.
template <class T, bool IsMax>
struct ArgPolicy {
  using Value = T;
  using V = Compute<T>;
  struct State {
    V value;
    int64_t position;  // negative: no value yet
  };
  static constexpr int kRows = 4;
  static constexpr int kColumns = 1;

  int64_t* out;

  __device__ __forceinline__ State init() const { return {V{}, -1}; }
  __device__ __forceinline__ double shift(int64_t) const { return 0; }
  __device__ __forceinline__ State combine(const State& a, const State& b) const {
    if (a.position < 0) return b;
    if (b.position < 0) return a;
    const bool a_nan = a.value != a.value;
    const bool b_nan = b.value != b.value;
    bool b_wins = b.position < a.position;  // of equals
    if (a_nan != b_nan)
      b_wins = b_nan;
    else if (IsMax ? a.value > b.value : a.value < b.value)
      b_wins = false;
    else if (IsMax ? b.value > a.value : b.value < a.value)
      b_wins = true;
    return b_wins ? b : a;
  }
  template <int N>
  __device__ __forceinline__ void add(State& state, const Pack<T, N>& pack, int64_t position,
                                      int64_t step, double) const {
#pragma unroll
    for (int i = 0; i < N; ++i)
      state = combine(state, State{static_cast<V>(widen(pack.values[i])), position + i * step});
  }
  __device__ __forceinline__ void write(const State& state, int64_t offset, double) const {
    out[offset] = state.position;
  }
};

}  // namespace cuda

template <class T, bool IsMax>
static void kernel(const ArgExtremeArgs<T, IsMax>& args, const Stream& stream) {
  cuda::reduce(stream, cuda::ReducePlan(args.x.layout, args.out.layout, args.out.layout),
               args.x.data, cuda::ArgPolicy<T, IsMax>{args.out.data});
}

}  // namespace gable
