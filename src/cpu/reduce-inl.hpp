// SPDX-License-Identifier: Apache-2.0
// The typed part of the reduction kernel, for any reducer; included by a file a family, so that
// each compiles fast. The loop nest is in reduce_driver.cpp.
#pragma once

#include <algorithm>
#include <cstdint>

#include "gable/ops/reduce.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"
#include "reduce_driver.hpp"

namespace gable {
namespace cpu {

inline constexpr int64_t kRowLanes = 8;  // independent states of a short dense row

template <class R, class T, class Out>
class ReduceBody final : public ReduceStates {
  using V = Compute<T>;
  using State = typename R::template State<T>;
  static_assert(sizeof(State) <= kMaxStateBytes);

 public:
  explicit ReduceBody(const ReduceArgs<R, T, Out>& args)
      : ReduceStates(sizeof(State), R::shifted ? args.shift.data : nullptr), a_(args) {}

  void init(void* states, int64_t n) const override {
    std::fill_n(static_cast<State*>(states), n, R::template init<State>());
  }

  void combine(void* into, const void* from, int64_t n) const override {
    auto* a = static_cast<State*>(into);
    const auto* b = static_cast<const State*>(from);
    for (int64_t j = 0; j < n; ++j) a[j] = R::combine(a[j], b[j]);
  }

  void add_rows(void* into, const double* shifts, int64_t offset, int64_t rows, int64_t step,
                int64_t n, int64_t column_step) const override {
    auto* __restrict states = static_cast<State*>(into);
    const T* x = a_.x.data + offset;
    const R r = a_.reducer;
    auto shift_of = [shifts](int64_t j) { return R::shifted ? shifts[j] : 0.0; };
    if (n == 1) {
      State s = states[0];
      if (step == 1 && rows >= 2 * kRowLanes) {
        State lanes[kRowLanes];
        std::fill_n(lanes, kRowLanes, R::template init<State>());
        for (; rows >= kRowLanes; rows -= kRowLanes, x += kRowLanes)
          for (int64_t j = 0; j < kRowLanes; ++j)
            lanes[j] = r.step(lanes[j], convert<V>(x[j]), shift_of(0));
        for (int64_t half = kRowLanes / 2; half > 0; half /= 2)
          for (int64_t j = 0; j < half; ++j) lanes[j] = R::combine(lanes[j], lanes[j + half]);
        s = R::combine(s, lanes[0]);
      }
      for (; rows > 0; --rows, x += step) s = r.step(s, convert<V>(*x), shift_of(0));
      states[0] = s;
      return;
    }
    if (column_step != 1) {
      for (; rows > 0; --rows, x += step)
        for (int64_t j = 0; j < n; ++j)
          states[j] = r.step(states[j], convert<V>(x[j * column_step]), shift_of(j));
      return;
    }
    for (; rows >= 4; rows -= 4, x += 4 * step) {
      const T* x1 = x + step;
      const T* x2 = x1 + step;
      const T* x3 = x2 + step;
      for (int64_t j = 0; j < n; ++j) {
        State s = r.step(states[j], convert<V>(x[j]), shift_of(j));
        s = r.step(s, convert<V>(x1[j]), shift_of(j));
        s = r.step(s, convert<V>(x2[j]), shift_of(j));
        states[j] = r.step(s, convert<V>(x3[j]), shift_of(j));
      }
    }
    for (; rows > 0; --rows, x += step)
      for (int64_t j = 0; j < n; ++j) states[j] = r.step(states[j], convert<V>(x[j]), shift_of(j));
  }

  void write(const void* states, int64_t n, const AxisCursor& at, int64_t out_step,
             int64_t shift_step, int64_t count) const override {
    const auto* s = static_cast<const State*>(states);
    for (int64_t j = 0; j < n; ++j)
      a_.out.data[at.out + j * out_step] = a_.reducer.template finish<Out>(
          s[j], R::shifted ? a_.shift.data[at.shift + j * shift_step] : 0.0, count);
  }

 private:
  const ReduceArgs<R, T, Out>& a_;
};

}  // namespace cpu

template <class R, class T, class Out>
static void kernel(const ReduceArgs<R, T, Out>& args) {
  cpu::drive_reduction(
      cpu::ReducePlan(args.x.layout, args.out.layout,
                      args.shift.data != nullptr ? args.shift.layout : args.out.layout),
      cpu::ReduceBody<R, T, Out>(args));
}

template <class R, class T>
static void kernel(const ReduceBackwardArgs<R, T>& args) {
  using C = Compute<T>;
  const TensorView<const double>& aux = args.aux;
  const bool has_aux = aux.data != nullptr;
  const StridedLoop<5> loop({&args.dx.layout, &args.x.layout, &args.dy.layout, &args.y.layout,
                             has_aux ? &aux.layout : &args.y.layout});
  const auto [sd, sx, sg, sy, sa] = loop.row_strides();
  loop.parallel(kElementwiseGrain,
                [&, sd = sd, sx = sx, sg = sg, sy = sy, sa = sa](const auto& at, int64_t n) {
                  T* __restrict dx = args.dx.data + at[0];
                  const T* x = args.x.data + at[1];
                  const T* dy = args.dy.data + at[2];
                  const T* y = args.y.data + at[3];
                  const double* second = has_aux ? aux.data + at[4] : nullptr;
                  for (int64_t i = 0; i < n; ++i)
                    dx[i * sd] = convert<T>(args.reducer.bwd(
                        convert<C>(x[i * sx]), convert<C>(dy[i * sg]), convert<C>(y[i * sy]),
                        second != nullptr ? second[i * sa] : 0.0, args.count));
                });
}

}  // namespace gable
