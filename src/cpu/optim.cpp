// SPDX-License-Identifier: Apache-2.0
// Optimizer updates and the sum of squares for gradient clipping.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <vector>

#include "gable/ops/optimizer.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {

namespace {

// One element's update from loop-invariant parameters, so that the dense loop vectorizes.
enum class Momentum { none, first, plain, nesterov };

template <Momentum kMode, class C>
struct SgdUpdate {
  static constexpr int kStates = kMode == Momentum::none ? 0 : 1;
  C lr, momentum, damped, decay, scale;
  void operator()(C& p, C gradient, C* buffer, C*) const {
    C g = gradient * scale + decay * p;
    if constexpr (kMode == Momentum::none) {
      p -= lr * g;
    } else {
      const C b = kMode == Momentum::first ? g : momentum * *buffer + damped * g;
      *buffer = b;
      p -= lr * (kMode == Momentum::nesterov ? g + momentum * b : b);
    }
  }
};

template <class C>
struct AdamUpdate {
  static constexpr int kStates = 2;
  C beta1, rest1, beta2, rest2, eps, step_size, inverse_root, shrink, decay, scale;
  void operator()(C& p, C gradient, C* mean, C* square) const {
    const C g = gradient * scale + decay * p;
    const C m = beta1 * *mean + rest1 * g;
    const C v = beta2 * *square + rest2 * g * g;
    *mean = m;
    *square = v;
    p = p * shrink - step_size * (m / (std::sqrt(v) * inverse_root + eps));
  }
};

// Applies `update(p, g, states...)` along a row; __restrict parameters of a plain function are what
// lets the dense loop vectorize. Steps: master, gradient, two states, compute copy.
template <class T, class U, class C = Compute<T>>
void update_dense(const U update, int64_t n, C* __restrict p, const C* __restrict g,
                  C* __restrict s0, C* __restrict s1, T* __restrict copy) {
  for (int64_t i = 0; i < n; ++i) {
    C value = p[i];
    update(value, g[i], s0 + (U::kStates > 0 ? i : 0), s1 + (U::kStates > 1 ? i : 0));
    p[i] = value;
    if constexpr (UpdateViews<T>::has_copy) copy[i] = convert<T>(value);
  }
}

template <class T, class U>
void run_update(const U& update, const UpdateViews<T>& at, const TensorView<Compute<T>>& state0,
                const TensorView<Compute<T>>& state1) {
  using C = Compute<T>;
  // States that the update does not have follow the master and are not touched.
  const TensorView<C>& s0 = U::kStates > 0 ? state0 : at.master;
  const TensorView<C>& s1 = U::kStates > 1 ? state1 : at.master;
  const StridedLoop<5> loop(
      {&at.master.layout, &at.gradient.layout, &s0.layout, &s1.layout, &at.value.layout});
  const auto step = loop.row_strides();
  const bool dense = step == std::array<int64_t, 5>{1, 1, 1, 1, 1};
  loop.parallel(kElementwiseGrain, [&](const auto& o, int64_t n) {
    C* p = at.master.data + o[0];
    const C* g = at.gradient.data + o[1];
    C* a = U::kStates > 0 ? s0.data + o[2] : nullptr;
    C* b = U::kStates > 1 ? s1.data + o[3] : nullptr;
    T* copy = at.value.data + o[4];
    if (dense) return update_dense<T>(update, n, p, g, a, b, copy);
    for (int64_t i = 0; i < n; ++i) {
      update(p[i * step[0]], g[i * step[1]], a + (U::kStates > 0 ? i * step[2] : 0),
             b + (U::kStates > 1 ? i * step[3] : 0));
      if constexpr (UpdateViews<T>::has_copy) copy[i * step[4]] = convert<T>(p[i * step[0]]);
    }
  });
}

template <Momentum kMode, class T>
void run_sgd(const SgdArgs<T>& a) {
  using C = Compute<T>;
  const SgdUpdate<kMode, C> update{static_cast<C>(a.lr), static_cast<C>(a.momentum),
                                   static_cast<C>(1 - a.dampening), static_cast<C>(a.weight_decay),
                                   static_cast<C>(a.gradient_scale)};
  run_update(update, a.at, a.buffer, a.buffer);
}

bool is_skipped(const UpdateControl& c) {
  return c.found_inf.data != nullptr && *c.found_inf.data != 0;
}
int64_t effective_step(int64_t steps, const UpdateControl& c) {
  return c.skipped.data != nullptr ? steps - *c.skipped.data : steps;
}
template <class Args>
Args with_scale(const Args& a) {
  Args scaled = a;
  if (a.control.scale.data != nullptr) scaled.gradient_scale *= double{*a.control.scale.data};
  return scaled;
}

template <class T>
void run_one(const SgdArgs<T>& args) {
  if (is_skipped(args.control)) return;
  SgdArgs<T> a = with_scale(args);
  if (a.momentum == 0) return run_sgd<Momentum::none>(a);
  const bool first = effective_step(a.steps, a.control) == 1;
  // On the first step b = g, so Nesterov's g + momentum b is (1 + momentum) g.
  if (first && a.nesterov) a.lr *= 1 + a.momentum;
  if (first) return run_sgd<Momentum::first>(a);
  if (a.nesterov) return run_sgd<Momentum::nesterov>(a);
  run_sgd<Momentum::plain>(a);
}

template <class T>
void run_one(const AdamArgs<T>& args) {
  if (is_skipped(args.control)) return;
  using C = Compute<T>;
  const AdamArgs<T> a = with_scale(args);
  const auto t = static_cast<double>(effective_step(a.steps, a.control));
  const double step_size = a.lr / (1 - std::pow(a.beta1, t));
  const double root = std::sqrt(1 - std::pow(a.beta2, t));
  const AdamUpdate<C> update{static_cast<C>(a.beta1),        static_cast<C>(1 - a.beta1),
                             static_cast<C>(a.beta2),        static_cast<C>(1 - a.beta2),
                             static_cast<C>(a.eps),          static_cast<C>(step_size),
                             static_cast<C>(1 / root),       static_cast<C>(a.shrink),
                             static_cast<C>(a.weight_decay), static_cast<C>(a.gradient_scale)};
  run_update(update, a.at, a.mean, a.square);
}

template <class C>
void run_one(const UnscaleArgs<C>& a) {
  const auto inverse = static_cast<C>(1.0 / double{*a.scale.data});
  const StridedLoop<1> loop({&a.gradient.layout});
  const int64_t step = loop.row_strides()[0];
  std::atomic<bool> finite{true};
  loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
    C* g = a.gradient.data + at[0];
    C sum = 0;  // stays 0 unless a value is infinite or NaN
    for (int64_t i = 0; i < n; ++i) {
      g[i * step] *= inverse;
      sum += g[i * step] * C(0);
    }
    if (sum != 0) finite = false;
  });
  if (!finite) *a.found_inf.data = 1;
}

template <class T>
void run_one(const SquareSumArgs<T>& a) {
  const StridedLoop<1> loop({&a.x.layout});
  const int64_t stride = loop.row_strides()[0];
  constexpr int64_t kChunk = 1 << 14;
  const int64_t chunks = (loop.numel() + kChunk - 1) / kChunk;
  std::vector<double> partial(static_cast<size_t>(chunks));
  parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      std::array<double, 8> lanes{};
      loop.visit(c * kChunk, std::min((c + 1) * kChunk, loop.numel()),
                 [&](const auto& at, int64_t n) {
                   const T* x = a.x.data + at[0];
                   for (int64_t i = 0; i < n; ++i) {
                     const auto value = static_cast<double>(x[i * stride]);
                     lanes[static_cast<size_t>(i % 8)] += value * value;
                   }
                 });
      for (double lane : lanes) partial[static_cast<size_t>(c)] += lane;
    }
  });
  double sum = 0;
  for (double p : partial) sum += p;
  *a.out.data = sum;
}

}  // namespace

// Parameters one after another, each by all threads.
template <class Args>
static void kernel(const ManyArgs<Args>& many) {
  for (const Args& a : many.calls) run_one(a);
}
GABLE_CPU_KERNEL_FLOATS(SgdManyArgs)
GABLE_CPU_KERNEL_FLOATS(AdamManyArgs)
GABLE_CPU_KERNEL(ManyArgs<SquareSumArgs<float>>)
GABLE_CPU_KERNEL(ManyArgs<SquareSumArgs<double>>)
GABLE_CPU_KERNEL(ManyArgs<UnscaleArgs<float>>)
GABLE_CPU_KERNEL(ManyArgs<UnscaleArgs<double>>)

static void kernel(const ClipFactorArgs& a) {
  double sum = 0;
  for (int64_t i = 0; i < a.sums.numel(); ++i) sum += a.sums.data[i * a.sums.stride(0)];
  const double scale = a.scale.data != nullptr ? double{*a.scale.data} : 1;
  const double norm = std::sqrt(sum) * std::abs(scale);
  const bool finite = std::isfinite(norm);
  const double factor = a.max_norm / (norm + 1e-6);
  *a.norm.data = norm;
  *a.factor.data = static_cast<float>(finite && factor < 1 ? scale * factor : scale);
  *a.found_inf.data = finite ? 0 : 1;
}
GABLE_CPU_KERNEL(ClipFactorArgs)

static void kernel(const ScalerUpdateArgs& a) {
  const bool found = *a.found_inf.data != 0;
  *a.found_inf.data = 0;
  if (found) {
    *a.scale.data = static_cast<float>(double{*a.scale.data} * a.backoff);
    *a.streak.data = 0;
    ++*a.skipped.data;
    return;
  }
  ++*a.taken.data;
  if (++*a.streak.data < a.interval) return;
  *a.streak.data = 0;
  const auto grown = static_cast<float>(double{*a.scale.data} * a.growth);
  if (std::isfinite(grown)) *a.scale.data = grown;
}
GABLE_CPU_KERNEL(ScalerUpdateArgs)

}  // namespace gable
