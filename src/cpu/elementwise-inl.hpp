// SPDX-License-Identifier: Apache-2.0
// Loops of the elementwise kernels; included by one file a dtype, so that each compiles fast.
// Dense rows of compute types run as they are; half, bfloat16 and strided rows go through tiles.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "convert-inl.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {
namespace cpu {

template <int N>
using RowFunction = void (*)(const void* context, const std::array<int64_t, N>& at, int64_t n);

// One driver for all operators of N operands: only the row body is instantiated for each.
template <int N>
[[gnu::noinline]] inline void drive(const StridedLoop<N>& loop, RowFunction<N> row,
                                    const void* context) {
  loop.parallel(kElementwiseGrain,
                [&](const std::array<int64_t, N>& at, int64_t n) { row(context, at, n); });
}

template <int N, class Row>
void drive(const StridedLoop<N>& loop, const Row& row) {
  drive<N>(
      loop,
      [](const void* context, const std::array<int64_t, N>& at, int64_t n) {
        (*static_cast<const Row*>(context))(at, n);
      },
      &row);
}

// True where rows of these types and strides need no tiles.
template <class... Ts>
constexpr bool are_compute_types = (!SmallFloat<Ts> && ...);
template <class... Strides>
bool all_one(Strides... strides) {
  return ((strides == 1) && ...);
}

// Calls f(first, count) for pieces of at most kTile of n.
template <class Piece>
void for_tiles(int64_t n, Piece&& f) {
  for (int64_t i = 0; i < n; i += kTile) f(i, std::min(kTile, n - i));
}

// A functor with a faster function of a restricted range; see Sin.
template <class F, class V>
concept HasFastRange = std::same_as<V, float> && requires(const F& f, V x) {
  f.fast_fwd(x);
};

template <class F, class V>
bool all_fast(const V* in, int64_t n) {
  bool fast = true;
  for (int64_t i = 0; i < n; ++i) fast &= F::in_fast_range(in[i]);
  return fast;
}

// --- dense rows: the only loops over an operator's functor. They may run in place.

template <class F, class V, class Out>
[[gnu::noinline]] void unary_row(const F& functor, Out* out, const V* in, int64_t n) {
  const F f = functor;
  if constexpr (HasFastRange<F, V>) {
    for_tiles(n, [&](int64_t first, int64_t count) {
      const V* x = in + first;
      Out* y = out + first;
      if (all_fast<F>(x, count)) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) y[i] = f.fast_fwd(x[i]);
      } else {
        for (int64_t i = 0; i < count; ++i) y[i] = f.fwd(x[i]);
      }
    });
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = f.fwd(in[i]);
  }
}

template <class F, class V>
[[gnu::noinline]] void unary_backward_row(const F& functor, V* dx, const V* saved, const V* dy,
                                          int64_t n) {
  const F f = functor;
  if constexpr (HasFastRange<F, V>) {
    for_tiles(n, [&](int64_t first, int64_t count) {
      const V* s = saved + first;
      if (all_fast<F>(s, count)) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) dx[first + i] = f.fast_bwd(s[i], dy[first + i]);
      } else {
        for (int64_t i = 0; i < count; ++i) dx[first + i] = f.bwd(s[i], dy[first + i]);
      }
    });
  } else if constexpr (F::save == Save::nothing) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = f.bwd(V(0), dy[i]);
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) dx[i] = f.bwd(saved[i], dy[i]);
  }
}

template <class F, class V, class Out>
[[gnu::noinline]] void binary_row(const F& functor, Out* out, const V* a, const V* b, int64_t n) {
  const F f = functor;
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = f.fwd(a[i], b[i]);
}

// da or db may be null.
template <class F, class V>
[[gnu::noinline]] void binary_backward_row(const F& functor, V* da, V* db, const V* a, const V* b,
                                           const V* dy, int64_t n) {
  const F f = functor;
  if (da != nullptr && db != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const auto [to_a, to_b] = f.bwd(a[i], b[i], dy[i]);
      da[i] = to_a;
      db[i] = to_b;
    }
  } else if (da != nullptr) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) da[i] = f.bwd(a[i], b[i], dy[i]).first;
  } else {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) db[i] = f.bwd(a[i], b[i], dy[i]).second;
  }
}

}  // namespace cpu

template <class F, class T, class Out>
static void kernel(const UnaryArgs<F, T, Out>& a) {
  const StridedLoop<2> loop({&a.out.layout, &a.in.layout});
  const auto [so, si] = loop.row_strides();
  cpu::drive(loop, [&a, so = so, si = si](const auto& at, int64_t n) {
    Out* out = a.out.data + at[0];
    const T* in = a.in.data + at[1];
    if constexpr (cpu::are_compute_types<T, Out>) {
      if (cpu::all_one(so, si)) return cpu::unary_row(a.f, out, in, n);
    }
    Compute<T> in_tile[cpu::kTile];
    Compute<Out> out_tile[cpu::kTile];
    cpu::for_tiles(n, [&, so = so, si = si](int64_t first, int64_t count) {
      Compute<Out>* y = cpu::tile_target(out + first * so, so, out_tile);
      cpu::unary_row(a.f, y, cpu::load_tile(in + first * si, si, count, in_tile), count);
      cpu::store_tile(y, out + first * so, so, count);
    });
  });
}

template <class F, class T>
static void kernel(const UnaryBackwardArgs<F, T>& a) {
  constexpr bool reads = F::save != Save::nothing;
  const TensorView<const T>& saved = reads ? a.saved : a.dy;
  const StridedLoop<3> loop({&a.dx.layout, &a.dy.layout, &saved.layout});
  const auto [sx, sy, ss] = loop.row_strides();
  cpu::drive(loop, [&a, &saved, sx = sx, sy = sy, ss = ss](const auto& at, int64_t n) {
    T* dx = a.dx.data + at[0];
    const T* dy = a.dy.data + at[1];
    const T* s = saved.data + at[2];
    if constexpr (cpu::are_compute_types<T>) {
      if (cpu::all_one(sx, sy, ss)) return cpu::unary_backward_row(a.f, dx, s, dy, n);
    }
    Compute<T> tiles[3][cpu::kTile];
    cpu::for_tiles(n, [&, sx = sx, sy = sy, ss = ss](int64_t first, int64_t count) {
      Compute<T>* x = cpu::tile_target(dx + first * sx, sx, tiles[0]);
      const Compute<T>* y = cpu::load_tile(dy + first * sy, sy, count, tiles[1]);
      const Compute<T>* v = y;
      if constexpr (reads) v = cpu::load_tile(s + first * ss, ss, count, tiles[2]);
      cpu::unary_backward_row(a.f, x, v, y, count);
      cpu::store_tile(x, dx + first * sx, sx, count);
    });
  });
}

template <class F, class T, class Out>
static void kernel(const BinaryArgs<F, T, Out>& args) {
  const StridedLoop<3> loop({&args.out.layout, &args.a.layout, &args.b.layout});
  const auto [so, sa, sb] = loop.row_strides();
  cpu::drive(loop, [&args, so = so, sa = sa, sb = sb](const auto& at, int64_t n) {
    Out* out = args.out.data + at[0];
    const T* a = args.a.data + at[1];
    const T* b = args.b.data + at[2];
    if constexpr (cpu::are_compute_types<T, Out>) {
      if (cpu::all_one(so, sa, sb)) return cpu::binary_row(args.f, out, a, b, n);
    }
    Compute<T> tiles[2][cpu::kTile];
    Compute<Out> out_tile[cpu::kTile];
    cpu::for_tiles(n, [&, so = so, sa = sa, sb = sb](int64_t first, int64_t count) {
      Compute<Out>* y = cpu::tile_target(out + first * so, so, out_tile);
      const Compute<T>* x0 = cpu::load_tile(a + first * sa, sa, count, tiles[0]);
      const Compute<T>* x1 = cpu::load_tile(b + first * sb, sb, count, tiles[1]);
      cpu::binary_row(args.f, y, x0, x1, count);
      cpu::store_tile(y, out + first * so, so, count);
    });
  });
}

template <class F, class T>
static void kernel(const BinaryBackwardArgs<F, T>& args) {
  // An unwanted output is visited as if it were the other one, and not written.
  const bool wants_a = args.da.data != nullptr;
  const bool wants_b = args.db.data != nullptr;
  if (!wants_a && !wants_b) return;
  const TensorView<T>& lead = wants_a ? args.da : args.db;
  const StridedLoop<5> loop({&lead.layout, wants_b ? &args.db.layout : &lead.layout,
                             &args.dy.layout, &args.a.layout, &args.b.layout});
  const auto s = loop.row_strides();
  cpu::drive(loop, [&args, wants_a, wants_b, s](const auto& at, int64_t n) {
    T* da = wants_a ? args.da.data + at[0] : nullptr;
    T* db = wants_b ? args.db.data + at[1] : nullptr;
    const T* dy = args.dy.data + at[2];
    const T* a = args.a.data + at[3];
    const T* b = args.b.data + at[4];
    if constexpr (cpu::are_compute_types<T>) {
      if (cpu::all_one(s[0], s[1], s[2], s[3], s[4]))
        return cpu::binary_backward_row(args.f, da, db, a, b, dy, n);
    }
    using C = Compute<T>;
    C tiles[5][cpu::kTile];
    cpu::for_tiles(n, [&](int64_t first, int64_t count) {
      C* to_a = wants_a ? cpu::tile_target(da + first * s[0], s[0], tiles[0]) : nullptr;
      C* to_b = wants_b ? cpu::tile_target(db + first * s[1], s[1], tiles[1]) : nullptr;
      const C* y = cpu::load_tile(dy + first * s[2], s[2], count, tiles[2]);
      const C* x0 = y;  // where f saves nothing, a and b stand for dy
      const C* x1 = y;
      if constexpr (F::saves) {
        x0 = cpu::load_tile(a + first * s[3], s[3], count, tiles[3]);
        x1 = cpu::load_tile(b + first * s[4], s[4], count, tiles[4]);
      }
      cpu::binary_backward_row(args.f, to_a, to_b, x0, x1, y, count);
      if (wants_a) cpu::store_tile(to_a, da + first * s[0], s[0], count);
      if (wants_b) cpu::store_tile(to_b, db + first * s[1], s[1], count);
    });
  });
}

}  // namespace gable

#define GABLE_INSTANTIATE_UNARY(T, F) GABLE_CPU_KERNEL(gable::UnaryArgs<gable::F, T>)
#define GABLE_INSTANTIATE_UNARY_BACKWARD(T, F) \
  GABLE_CPU_KERNEL(gable::UnaryBackwardArgs<gable::F, T>)
#define GABLE_INSTANTIATE_BINARY(T, F) GABLE_CPU_KERNEL(gable::BinaryArgs<gable::F, T>)
#define GABLE_INSTANTIATE_BINARY_BACKWARD(T, F) \
  GABLE_CPU_KERNEL(gable::BinaryBackwardArgs<gable::F, T>)
#define GABLE_INSTANTIATE_PREDICATE(T, F) GABLE_CPU_KERNEL(gable::UnaryArgs<gable::F, T, bool>)
#define GABLE_INSTANTIATE_COMPARE(T, F) GABLE_CPU_KERNEL(gable::BinaryArgs<gable::F, T, bool>)
