// SPDX-License-Identifier: Apache-2.0
// elementwise(): any per-element function over strided operands, 16 bytes at a time where their
// layouts allow it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "device/numeric.cuh"
#include "device/strided.cuh"
#include "gable/core/type_list.hpp"
#include "runtime/launch.hpp"

namespace gable::cuda {

/// Base addresses of the operands of one call; an output without address is not written.
template <int N>
struct Addresses {
  void* at[N];
};

template <class F, class Outs, class Ins>
struct Elementwise;

/// f(outs&..., ins...) on values of the compute types. Operands are numbered outputs first.
template <class F, class... Outs, class... Ins>
struct Elementwise<F, TypeList<Outs...>, TypeList<Ins...>> {
  using Function = F;
  static constexpr int kOuts = sizeof...(Outs);
  static constexpr int kOperands = kOuts + sizeof...(Ins);
  // Elements a pack: 16 bytes of the widest operand, or 8 of bytes, which compile in half the time.
  static constexpr int kWidth =
      std::min(8, static_cast<int>(16 / std::max({sizeof(Outs)..., sizeof(Ins)...})));
  static constexpr int kUnroll = kOperands <= 3 ? 2 : 1;  // packs a thread

  template <int I, class T, int V>
  struct Slot {
    Pack<T, V> pack;
  };
  template <int V, class Indices, class... Ts>
  struct Slots;
  template <int V, int... I, class... Ts>
  struct Slots<V, std::integer_sequence<int, I...>, Ts...> : Slot<I, Ts, V>... {
    /// `broadcast` has a bit for each operand that is the same along a row.
    __device__ __forceinline__ void load(const Addresses<kOperands>& addresses,
                                         const Offsets<kOperands>& o, uint32_t broadcast) {
      (load_one<I, Ts>(addresses, o, broadcast), ...);
    }
    template <int K, class T>
    __device__ __forceinline__ void load_one(const Addresses<kOperands>& addresses,
                                             const Offsets<kOperands>& o, uint32_t broadcast) {
      const T* from = static_cast<const T*>(addresses.at[kOuts + K]) + o.at[kOuts + K];
      Pack<T, V>& pack = Slot<K, T, V>::pack;
      if (V > 1 && ((broadcast >> (kOuts + K)) & 1U) == 0) {
        pack = *reinterpret_cast<const Pack<T, V>*>(from);
      } else {
        const T value = *from;
#pragma unroll
        for (int v = 0; v < V; ++v) pack.values[v] = value;
      }
    }
    __device__ __forceinline__ void store(const Addresses<kOperands>& addresses,
                                          const Offsets<kOperands>& o) const {
      (store_one<I, Ts>(addresses, o), ...);
    }
    template <int K, class T>
    __device__ __forceinline__ void store_one(const Addresses<kOperands>& addresses,
                                              const Offsets<kOperands>& o) const {
      if (addresses.at[K] == nullptr) return;
      T* to = static_cast<T*>(addresses.at[K]) + o.at[K];
      *reinterpret_cast<Pack<T, V>*>(to) = Slot<K, T, V>::pack;
    }
  };
  template <int V>
  using OutSlots = Slots<V, std::make_integer_sequence<int, kOuts>, Outs...>;
  template <int V>
  using InSlots = Slots<V, std::make_integer_sequence<int, sizeof...(Ins)>, Ins...>;

  template <int V, int... O, int... I>
  __device__ static __forceinline__ void compute(const F& f, OutSlots<V>& out, const InSlots<V>& in,
                                                 std::integer_sequence<int, O...>,
                                                 std::integer_sequence<int, I...>) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      Slots<1, std::integer_sequence<int, O...>, Compute<Outs>...> wide;
      f(static_cast<Slot<O, Compute<Outs>, 1>&>(wide).pack.values[0]...,
        widen(static_cast<const Slot<I, Ins, V>&>(in).pack.values[v])...);
      ((static_cast<Slot<O, Outs, V>&>(out).pack.values[v] =
            narrow<Outs>(static_cast<Slot<O, Compute<Outs>, 1>&>(wide).pack.values[0])),
       ...);
    }
  }
  template <int V>
  __device__ static __forceinline__ void compute(const F& f, OutSlots<V>& out,
                                                 const InSlots<V>& in) {
    compute<V>(f, out, in, std::make_integer_sequence<int, kOuts>{},
               std::make_integer_sequence<int, sizeof...(Ins)>{});
  }

  /// U positions a thread, each V elements.
  template <int V, int U>
  __device__ static __forceinline__ void run(const F& f, const Addresses<kOperands>& addresses,
                                             const StridedIndex<kOperands>& index,
                                             uint32_t broadcast) {
    const int64_t first = static_cast<int64_t>(blockIdx.x) * (blockDim.x * U) + threadIdx.x;
    const int64_t count = index.count();
    Offsets<kOperands> o[U];
    InSlots<V> in[U];
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t position = first + static_cast<int64_t>(u) * blockDim.x;
      if (position < count) {
        o[u] = index.offsets(position);
        in[u].load(addresses, o[u], broadcast);
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t position = first + static_cast<int64_t>(u) * blockDim.x;
      if (position < count) {
        OutSlots<V> out;
        compute<V>(f, out, in[u]);
        out.store(addresses, o[u]);
      }
    }
  }
};

inline constexpr int kElementwiseThreads = 256;

/// Packs; the `tail` elements after the last whole pack of one dense row go one by one.
template <class E>
__global__ void __launch_bounds__(kElementwiseThreads)
    packed_kernel(const typename E::Function f, const Addresses<E::kOperands> addresses,
                  const StridedIndex<E::kOperands> index, const uint32_t broadcast,
                  const int64_t whole, const int tail) {
  if (whole > 0) E::template run<E::kWidth, E::kUnroll>(f, addresses, index, broadcast);
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x < tail) {
    Offsets<E::kOperands> o;
#pragma unroll
    for (int k = 0; k < E::kOperands; ++k)
      o.at[k] = ((broadcast >> k) & 1U) != 0 ? 0 : whole * E::kWidth + threadIdx.x;
    typename E::template InSlots<1> in;
    typename E::template OutSlots<1> out;
    in.load(addresses, o, 0);
    E::template compute<1>(f, out, in);
    out.store(addresses, o);
  }
}

template <class E>
__global__ void __launch_bounds__(kElementwiseThreads)
    strided_kernel(const typename E::Function f, const Addresses<E::kOperands> addresses,
                   const StridedIndex<E::kOperands> index) {
  E::template run<1, 2 * E::kUnroll>(f, addresses, index, 0);
}

/// True where every row can be moved in packs of `width`: inner strides of 1 or, for inputs, 0,
/// rows of whole packs (or only one row), and aligned starts. Sets the broadcast bits.
template <int N>
bool packs_fit(const StridedLoop<N>& loop, const Addresses<N>& addresses, const int64_t* sizes,
               int outputs, int64_t width, uint32_t& broadcast) {
  broadcast = 0;
  if (loop.rank() > 1 && loop.row_length() % width != 0) return false;
  for (int k = 0; k < N; ++k) {
    const int64_t step = loop.row_strides()[static_cast<size_t>(k)];
    if (addresses.at[k] == nullptr) continue;
    if (step == 0 && k >= outputs) {
      broadcast |= 1U << k;
      continue;
    }
    if (step != 1 && loop.row_length() != 1) return false;
    const int64_t pack_bytes = sizes[k] * width;
    if (reinterpret_cast<uintptr_t>(addresses.at[k]) % static_cast<uintptr_t>(pack_bytes) != 0)
      return false;
    for (int d = 0; d + 1 < loop.rank(); ++d)
      if (loop.strides(d)[static_cast<size_t>(k)] % width != 0) return false;
  }
  return true;
}

/// Runs f over equally shaped operands, given outputs first; `loop` was made of their layouts.
template <class Outs, class Ins, int N, class F>
void elementwise(const Stream& stream, const StridedLoop<N>& loop, const Addresses<N>& addresses,
                 const F& f) {
  using E = Elementwise<F, Outs, Ins>;
  static_assert(E::kOperands == N);
  if (loop.numel() == 0) return;
  const auto sizes = []<class... O, class... I>(TypeList<O...>, TypeList<I...>) {
    return std::array<int64_t, static_cast<size_t>(N)>{static_cast<int64_t>(sizeof(O))...,
                                                       static_cast<int64_t>(sizeof(I))...};
  }(Outs{}, Ins{});
  uint32_t broadcast = 0;
  if (packs_fit(loop, addresses, sizes.data(), E::kOuts, E::kWidth, broadcast)) {
    const StridedIndex<N> index(loop, E::kWidth);
    const bool one_row = loop.rank() == 1;
    const int64_t whole = one_row ? loop.numel() / E::kWidth : index.count();
    const int tail = one_row ? static_cast<int>(loop.numel() % E::kWidth) : 0;
    const unsigned blocks =
        std::max(1U, blocks_for(whole, int64_t{kElementwiseThreads} * E::kUnroll));
    launch(stream, {blocks, kElementwiseThreads}, packed_kernel<E>, f, addresses, index, broadcast,
           whole, tail);
  } else {
    const unsigned blocks = blocks_for(loop.numel(), int64_t{kElementwiseThreads} * 2 * E::kUnroll);
    launch(stream, {blocks, kElementwiseThreads}, strided_kernel<E>, f, addresses,
           StridedIndex<N>(loop));
  }
}

}  // namespace gable::cuda
