// SPDX-License-Identifier: Apache-2.0
// Loops of the elementwise kernels; included by one file a dtype, so that each compiles fast.
#pragma once

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

}  // namespace cpu

template <class F, class T, class Out>
static void kernel(const UnaryArgs<F, T, Out>& a) {
  using C = Compute<T>;
  const StridedLoop<2> loop({&a.out.layout, &a.in.layout});
  const auto [so, si] = loop.row_strides();
  cpu::drive(loop, [&a, so, si](const auto& at, int64_t n) {
    Out* __restrict out = a.out.data + at[0];
    const T* in = a.in.data + at[1];
    const F f = a.f;
    if (so == 1 && si == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = convert<Out>(f.fwd(convert<C>(in[i])));
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * so] = convert<Out>(f.fwd(convert<C>(in[i * si])));
    }
  });
}

template <class F, class T>
static void kernel(const UnaryBackwardArgs<F, T>& a) {
  using C = Compute<T>;
  constexpr bool reads = F::save != Save::nothing;
  const StridedLoop<3> loop(
      {&a.dx.layout, &a.dy.layout, reads ? &a.saved.layout : &a.dy.layout});
  const auto [sx, sy, ss] = loop.row_strides();
  const T* saved = reads ? a.saved.data : a.dy.data;
  cpu::drive(loop, [&a, saved, sx, sy, ss](const auto& at, int64_t n) {
    T* __restrict dx = a.dx.data + at[0];
    const T* dy = a.dy.data + at[1];
    const T* s = saved + at[2];
    const F f = a.f;
    auto value = [&](T of) { return reads ? convert<C>(of) : C(0); };
    if (sx == 1 && sy == 1 && ss == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) dx[i] = convert<T>(f.bwd(value(s[i]), convert<C>(dy[i])));
    } else {
      for (int64_t i = 0; i < n; ++i)
        dx[i * sx] = convert<T>(f.bwd(value(s[i * ss]), convert<C>(dy[i * sy])));
    }
  });
}

template <class F, class T, class Out>
static void kernel(const BinaryArgs<F, T, Out>& args) {
  using C = Compute<T>;
  const StridedLoop<3> loop({&args.out.layout, &args.a.layout, &args.b.layout});
  const auto [so, sa, sb] = loop.row_strides();
  cpu::drive(loop, [&args, so, sa, sb](const auto& at, int64_t n) {
    Out* __restrict out = args.out.data + at[0];
    const T* a = args.a.data + at[1];
    const T* b = args.b.data + at[2];
    const F f = args.f;
    auto apply = [&f](T x, T y) { return convert<Out>(f.fwd(convert<C>(x), convert<C>(y))); };
    if (so == 1 && sa == 1 && sb == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i], b[i]);
    } else if (so == 1 && sa == 1 && sb == 0) {
      const T y = *b;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = apply(a[i], y);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * so] = apply(a[i * sa], b[i * sb]);
    }
  });
}

template <class F, class T>
static void kernel(const BinaryBackwardArgs<F, T>& args) {
  using C = Compute<T>;
  // An unwanted output is visited as if it were the other one, and not written.
  const TensorView<T>& lead = args.da.data != nullptr ? args.da : args.db;
  if (lead.data == nullptr) return;
  const StridedLoop<5> loop({&lead.layout, args.db.data != nullptr ? &args.db.layout : &lead.layout,
                             &args.dy.layout, &args.a.layout, &args.b.layout});
  const auto strides = loop.row_strides();
  cpu::drive(loop, [&args, strides](const auto& at, int64_t n) {
    const auto [s_da, s_db, s_dy, s_a, s_b] = strides;
    T* da = args.da.data;
    T* db = args.db.data;
    const T* dy = args.dy.data + at[2];
    const T* a = args.a.data + at[3];
    const T* b = args.b.data + at[4];
    const F f = args.f;
    auto loop_over = [&](auto wants_a, auto wants_b) {
      for (int64_t i = 0; i < n; ++i) {
        const auto [ga, gb] =
            f.bwd(convert<C>(a[i * s_a]), convert<C>(b[i * s_b]), convert<C>(dy[i * s_dy]));
        if constexpr (wants_a) da[at[0] + i * s_da] = convert<T>(ga);
        if constexpr (wants_b) db[at[1] + i * s_db] = convert<T>(gb);
      }
    };
    using Yes = std::true_type;
    using No = std::false_type;
    if (da != nullptr && db != nullptr)
      loop_over(Yes{}, Yes{});
    else if (da != nullptr)
      loop_over(Yes{}, No{});
    else
      loop_over(No{}, Yes{});
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
