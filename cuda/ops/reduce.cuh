// SPDX-License-Identifier: Apache-2.0
// The reduction kernels for any reducer; included by a file a family, so that each compiles fast.
#pragma once

#include <cfloat>
#include <cstring>

#include "device/elementwise.cuh"
#include "gable/ops/reduce.hpp"
#include "kernel.hpp"
#include "reduce_driver.cuh"

namespace gable {
namespace cuda {

/// A reducer of reduce_functors.hpp as a policy of reduce_driver.cuh.
template <class R, class T, class Out>
struct ReducerPolicy {
  using Value = T;
  using V = Compute<T>;
  using State = typename R::template State<T>;
  static constexpr int kRows = 16;
  static constexpr int kColumns = 8;

  R reducer;
  Out* out;
  const double* shifts;
  int64_t count;

  __device__ __forceinline__ State init() const { return R::template init<State>(); }
  __device__ __forceinline__ State combine(const State& a, const State& b) const {
    return R::combine(a, b);
  }
  __device__ __forceinline__ double shift(int64_t offset) const {
    if constexpr (R::shifted) return shifts[offset];
    return 0;
  }
  __device__ __forceinline__ void write(const State& state, int64_t offset, double shift) const {
    out[offset] = reducer.template finish<Out>(state, shift, count);
  }
  template <int N>
  __device__ __forceinline__ void add(State& state, const Pack<T, N>& pack, int64_t, int64_t,
                                      double shift) const {
    constexpr bool sums = std::is_base_of_v<Sum, R>;
    if constexpr (sums && sizeof(T) == 1 && N % 4 == 0) {
      uint32_t words[N / 4];
      memcpy(words, &pack, sizeof(words));
      uint32_t total = 0;
#pragma unroll
      for (int w = 0; w < N / 4; ++w) total = __dp4a(words[w], 0x01010101U, total);
      state += total;
    } else if constexpr (sums && SmallFloat<T> && N > 1 && !std::is_same_v<Out, double>) {
      // Pairwise in float: one conversion to double a pack. Values whose sum leaves float's range
      // go one by one.
      float parts[N];
#pragma unroll
      for (int i = 0; i < N; ++i) parts[i] = widen(pack.values[i]);
#pragma unroll
      for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
        for (int i = 0; i < half; ++i) parts[i] += parts[i + half];
      }
      if (fabsf(parts[0]) <= FLT_MAX) {
        state += static_cast<double>(parts[0]);
      } else {
#pragma unroll
        for (int i = 0; i < N; ++i) state += static_cast<double>(widen(pack.values[i]));
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; ++i)
        state = reducer.step(state, static_cast<V>(widen(pack.values[i])), shift);
    }
  }
};

template <class R>
struct ReducerBackward {
  R reducer;
  int64_t count;
  template <class V>
  __device__ __forceinline__ void operator()(V& dx, V x, V dy, V y, double aux) const {
    dx = reducer.bwd(x, dy, y, aux, count);
  }
  template <class V>
  __device__ __forceinline__ void operator()(V& dx, V x, V dy, V y) const {
    dx = reducer.bwd(x, dy, y, 0.0, count);
  }
};

/// Whether R::bwd reads aux.
template <class R>
inline constexpr bool kReadsAux =
    !std::is_same_v<R, Norm1> && !std::is_same_v<R, Norm2> && !std::is_same_v<R, LogSumExp>;

template <class T>
void* untyped(T* data) {
  return const_cast<void*>(static_cast<const void*>(data));
}

}  // namespace cuda

template <class R, class T, class Out>
static void kernel(const ReduceArgs<R, T, Out>& args, const Stream& stream) {
  const bool shifted = args.shift.data != nullptr;
  const cuda::ReducePlan plan(args.x.layout, args.out.layout,
                              shifted ? args.shift.layout : args.out.layout);
  cuda::reduce(stream, plan, args.x.data,
               cuda::ReducerPolicy<R, T, Out>{args.reducer, args.out.data, args.shift.data,
                                              plan.reduced.numel()});
}

template <class R, class T>
static void kernel(const ReduceBackwardArgs<R, T>& args, const Stream& stream) {
  const cuda::ReducerBackward<R> f{args.reducer, args.count};
  if constexpr (cuda::kReadsAux<R>) {
    const StridedLoop<5> loop(
        {&args.dx.layout, &args.x.layout, &args.dy.layout, &args.y.layout, &args.aux.layout});
    cuda::elementwise<TypeList<T>, TypeList<T, T, T, double>>(
        stream, loop,
        cuda::Addresses<5>{{cuda::untyped(args.dx.data), cuda::untyped(args.x.data),
                            cuda::untyped(args.dy.data), cuda::untyped(args.y.data),
                            cuda::untyped(args.aux.data)}},
        f);
  } else {
    const StridedLoop<4> loop({&args.dx.layout, &args.x.layout, &args.dy.layout, &args.y.layout});
    cuda::elementwise<TypeList<T>, TypeList<T, T, T>>(
        stream, loop,
        cuda::Addresses<4>{{cuda::untyped(args.dx.data), cuda::untyped(args.x.data),
                            cuda::untyped(args.dy.data), cuda::untyped(args.y.data)}},
        f);
  }
}

}  // namespace gable
