// SPDX-License-Identifier: Apache-2.0
// Selecting kernels: where, lerp, dropout.
#include "gable/ops/where.hpp"

#include <type_traits>

#include "elementwise-inl.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {

namespace {
using Zero = std::integral_constant<int64_t, 0>;
using One = std::integral_constant<int64_t, 1>;
}  // namespace

template <class T>
static void kernel(const WhereArgs<T>& args) {
  const StridedLoop<4> loop(
      {&args.out.layout, &args.condition.layout, &args.a.layout, &args.b.layout});
  const auto [so, sc, sa, sb] = loop.row_strides();
  loop.parallel(kElementwiseGrain,
                [&, so = so, sc = sc, sa = sa, sb = sb](const auto& at, int64_t n) {
                  T* __restrict out = args.out.data + at[0];
                  const bool* c = args.condition.data + at[1];
                  const T* a = args.a.data + at[2];
                  const T* b = args.b.data + at[3];
                  auto dense = [&](auto step_a, auto step_b) {
#pragma GCC ivdep
                    for (int64_t i = 0; i < n; ++i) {
                      const T x = a[i * step_a];
                      const T y = b[i * step_b];
                      out[i] = c[i] ? x : y;
                    }
                  };
                  if (so == 1 && sc == 1 && sa == 1 && sb == 1)
                    dense(One{}, One{});
                  else if (so == 1 && sc == 1 && sa == 1 && sb == 0)
                    dense(One{}, Zero{});
                  else if (so == 1 && sc == 1 && sa == 0 && sb == 1)
                    dense(Zero{}, One{});
                  else
                    for (int64_t i = 0; i < n; ++i) out[i * so] = c[i * sc] ? a[i * sa] : b[i * sb];
                });
}
GABLE_CPU_KERNEL_ALL(WhereArgs)

template <class T>
static void kernel(const LerpArgs<T>& args) {
  using C = Compute<T>;
  const StridedLoop<4> loop(
      {&args.out.layout, &args.a.layout, &args.b.layout, &args.weight.layout});
  const auto [so, sa, sb, sw] = loop.row_strides();
  auto mix = [](T a, T b, T w) {
    return convert<T>(math::lerp(convert<C>(a), convert<C>(b), convert<C>(w)));
  };
  loop.parallel(kElementwiseGrain,
                [&, so = so, sa = sa, sb = sb, sw = sw](const auto& at, int64_t n) {
                  T* __restrict out = args.out.data + at[0];
                  const T* a = args.a.data + at[1];
                  const T* b = args.b.data + at[2];
                  const T* w = args.weight.data + at[3];
                  if (so == 1 && sa == 1 && sb == 1 && sw == 1) {
#pragma GCC ivdep
                    for (int64_t i = 0; i < n; ++i) out[i] = mix(a[i], b[i], w[i]);
                  } else {
                    for (int64_t i = 0; i < n; ++i)
                      out[i * so] = mix(a[i * sa], b[i * sb], w[i * sw]);
                  }
                });
}
GABLE_CPU_KERNEL_FLOATS(LerpArgs)

GABLE_CPU_KERNEL_FLOATS(LerpScalarArgs)
GABLE_CPU_KERNEL_FLOATS(LerpScalarBackwardArgs)

template <class T>
static void kernel(const DropoutArgs<T>& args) {
  using C = Compute<T>;
  const StridedLoop<3> loop({&args.out.layout, &args.x.layout, &args.mask.layout});
  const auto [so, sx, sm] = loop.row_strides();
  const C scale = static_cast<C>(args.scale);
  auto scaled = [scale](T x, bool keep) { return convert<T>(keep ? convert<C>(x) * scale : C(0)); };
  loop.parallel(kElementwiseGrain, [&, so = so, sx = sx, sm = sm](const auto& at, int64_t n) {
    T* __restrict out = args.out.data + at[0];
    const T* x = args.x.data + at[1];
    const bool* mask = args.mask.data + at[2];
    if (so == 1 && sx == 1 && sm == 1) {
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = scaled(x[i], mask[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i * so] = scaled(x[i * sx], mask[i * sm]);
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(DropoutArgs)

}  // namespace gable
