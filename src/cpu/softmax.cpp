// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and their gradients along any dimension.
#include "gable/ops/softmax.hpp"

#include <algorithm>
#include <limits>

#include "kernel.hpp"
#include "lines.hpp"
#include "softmax-inl.hpp"

namespace gable {
namespace {

using cpu::kLineBlock;

template <int64_t Width, class C>
void softmax_lines(C* __restrict x, int64_t length, bool log, bool masked) {
  C top[Width];
  double sums[Width];
  C last[Width];
  cpu::line_max<Width>(top, x, length);
  for (int64_t j = 0; j < Width; ++j)  // a masked line of -inf becomes exp(-inf) = 0
    if (masked && top[j] == -std::numeric_limits<C>::infinity()) top[j] = C(0);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < Width; ++j) x[i * Width + j] -= top[j];
  cpu::exp_sums<Width>(sums, x, length, !log);
  for (int64_t j = 0; j < Width; ++j) {
    if (masked && sums[j] == 0) sums[j] = 1;
    last[j] = static_cast<C>(log ? math::log(sums[j]) : sums[j]);
  }
  if (log) {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < Width; ++j) x[i * Width + j] -= last[j];
  } else {
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < Width; ++j) x[i * Width + j] /= last[j];
  }
}

template <int64_t Width, class C>
void softmax_backward_lines(C* __restrict dx, const C* __restrict y, int64_t length, bool log) {
  double sums[Width];
  C s[Width];
  constexpr C never = -std::numeric_limits<C>::infinity();
  if (log)
    cpu::line_sums<Width, C>(sums, length, [=](int64_t i) { return y[i] == never ? C(0) : dx[i]; });
  else
    cpu::line_sums<Width, C>(sums, length,
                             [=](int64_t i) { return y[i] == C(0) ? C(0) : y[i] * dx[i]; });
  for (int64_t j = 0; j < Width; ++j) s[j] = static_cast<C>(sums[j]);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < Width; ++j) {
      const int64_t k = i * Width + j;
      if (log) {
        const C d = dx[k] - math::exp(y[k]) * s[j];
        dx[k] = y[k] == never ? C(0) : d;
      } else {
        const C d = y[k] * (dx[k] - s[j]);
        dx[k] = y[k] == C(0) ? C(0) : d;
      }
    }
}

}  // namespace

template <class T>
static void kernel(const SoftmaxArgs<T>& a) {
  using C = Compute<T>;
  const bool masked = a.mask.data != nullptr;
  const cpu::Lines<3> lines({&a.y.layout, &a.x.layout, masked ? &a.mask.layout : &a.x.layout},
                            a.dim);
  lines.parallel([&](const auto& at, int64_t count) {
    const int64_t width = lines.blocked ? kLineBlock : 1;
    cpu::LineBuffer<C> buffer(lines.length * width);
    C* row = buffer.data();
    cpu::load_lines(row, a.x.data + at[1], lines.length, lines.steps[1], count, lines.neighbours[1],
                    lines.blocked);
    auto for_masked = [&](C value) {
      if (!masked) return;
      for (int64_t i = 0; i < lines.length; ++i)
        for (int64_t j = 0; j < count; ++j)
          if (!a.mask.data[at[2] + i * lines.steps[2] + j * lines.neighbours[2]])
            row[i * width + j] = value;
    };
    for_masked(-std::numeric_limits<C>::infinity());
    if (!lines.blocked)
      softmax_lines<1>(row, lines.length, a.log, masked);
    else
      softmax_lines<kLineBlock>(row, lines.length, a.log, masked);
    for_masked(C(0));
    cpu::store_lines(a.y.data + at[0], row, lines.length, lines.steps[0], count,
                     lines.neighbours[0], lines.blocked);
  });
}
GABLE_CPU_KERNEL_FLOATS(SoftmaxArgs)

template <class T>
static void kernel(const SoftmaxBackwardArgs<T>& a) {
  using C = Compute<T>;
  const cpu::Lines<3> lines({&a.dx.layout, &a.dy.layout, &a.y.layout}, a.dim);
  lines.parallel([&](const auto& at, int64_t count) {
    const int64_t n = lines.length * (lines.blocked ? kLineBlock : 1);
    cpu::LineBuffer<C> buffer(2 * n);
    C* dx = buffer.data();
    C* y = dx + n;
    cpu::load_lines(dx, a.dy.data + at[1], lines.length, lines.steps[1], count, lines.neighbours[1],
                    lines.blocked);
    cpu::load_lines(y, a.y.data + at[2], lines.length, lines.steps[2], count, lines.neighbours[2],
                    lines.blocked);
    if (!lines.blocked)
      softmax_backward_lines<1>(dx, y, lines.length, a.log);
    else
      softmax_backward_lines<kLineBlock>(dx, y, lines.length, a.log);
    cpu::store_lines(a.dx.data + at[0], dx, lines.length, lines.steps[0], count,
                     lines.neighbours[0], lines.blocked);
  });
}
GABLE_CPU_KERNEL_FLOATS(SoftmaxBackwardArgs)

}  // namespace gable
