// SPDX-License-Identifier: Apache-2.0
// Optimizer updates and the sum of squares for gradient clipping.
#include <algorithm>
#include <array>
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
  C lr, momentum, damped, decay, scale;
  void operator()(C& p, C gradient, C& b) const {
    C g = gradient * scale;
    if (decay != C{0}) g += decay * p;
    if constexpr (kMode == Momentum::first) {
      b = g;
    } else if constexpr (kMode != Momentum::none) {
      b = momentum * b + damped * g;
    }
    if constexpr (kMode == Momentum::plain || kMode == Momentum::first) p -= lr * b;
    if constexpr (kMode == Momentum::nesterov) p -= lr * (g + momentum * b);
    if constexpr (kMode == Momentum::none) p -= lr * g;
  }
};

template <Momentum kMode, class T>
void run_sgd(const SgdArgs<T>& a) {
  using C = Compute<T>;
  const SgdUpdate<kMode, C> update{static_cast<C>(a.lr), static_cast<C>(a.momentum),
                                   static_cast<C>(1 - a.dampening), static_cast<C>(a.weight_decay),
                                   static_cast<C>(a.gradient_scale)};
  constexpr bool kBuffer = kMode != Momentum::none;
  const TensorView<C>& state = kBuffer ? a.buffer : a.at.master;
  const StridedLoop<4> loop(
      {&a.at.master.layout, &a.at.gradient.layout, &state.layout, &a.at.value.layout});
  const auto s = loop.row_strides();
  const bool dense = s == std::array<int64_t, 4>{1, 1, 1, 1};
  loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
    C* __restrict p = a.at.master.data + at[0];
    const C* __restrict g = a.at.gradient.data + at[1];
    C* __restrict b = kBuffer ? state.data + at[2] : nullptr;
    T* __restrict v = UpdateViews<T>::has_copy ? a.at.value.data + at[3] : nullptr;
    auto element = [&](int64_t ip, int64_t ig, int64_t ib, int64_t iv) {
      C unused{};
      if constexpr (kBuffer)
        update(p[ip], g[ig], b[ib]);
      else
        update(p[ip], g[ig], unused);
      if constexpr (UpdateViews<T>::has_copy) v[iv] = convert<T>(p[ip]);
    };
    if (dense) {
      for (int64_t i = 0; i < n; ++i) element(i, i, i, i);
    } else {
      for (int64_t i = 0; i < n; ++i) element(i * s[0], i * s[1], i * s[2], i * s[3]);
    }
  });
}

}  // namespace

template <class T>
static void kernel(const SgdArgs<T>& a) {
  if (a.momentum == 0) return run_sgd<Momentum::none>(a);
  // On the first step b = g, so Nesterov's g + momentum b is (1 + momentum) g.
  if (a.first && a.nesterov) {
    SgdArgs<T> start = a;
    start.lr = a.lr * (1 + a.momentum);
    return run_sgd<Momentum::first>(start);
  }
  if (a.first) return run_sgd<Momentum::first>(a);
  if (a.nesterov) return run_sgd<Momentum::nesterov>(a);
  run_sgd<Momentum::plain>(a);
}
GABLE_CPU_KERNEL_FLOATS(SgdArgs)

template <class T>
static void kernel(const AdamArgs<T>& a) {
  using C = Compute<T>;
  const C beta1 = static_cast<C>(a.beta1), rest1 = static_cast<C>(1 - a.beta1);
  const C beta2 = static_cast<C>(a.beta2), rest2 = static_cast<C>(1 - a.beta2);
  const C eps = static_cast<C>(a.eps), step_size = static_cast<C>(a.step_size);
  const C root = static_cast<C>(a.root), shrink = static_cast<C>(a.shrink);
  const C decay = static_cast<C>(a.weight_decay), scale = static_cast<C>(a.gradient_scale);
  const StridedLoop<5> loop({&a.at.master.layout, &a.at.gradient.layout, &a.mean.layout,
                             &a.square.layout, &a.at.value.layout});
  const auto s = loop.row_strides();
  const bool dense = s == std::array<int64_t, 5>{1, 1, 1, 1, 1};
  loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
    C* __restrict p = a.at.master.data + at[0];
    const C* __restrict gradient = a.at.gradient.data + at[1];
    C* __restrict m = a.mean.data + at[2];
    C* __restrict v = a.square.data + at[3];
    T* __restrict copy = UpdateViews<T>::has_copy ? a.at.value.data + at[4] : nullptr;
    auto element = [&](int64_t ip, int64_t ig, int64_t im, int64_t iv, int64_t ic) {
      C g = gradient[ig] * scale;
      if (decay != C{0}) g += decay * p[ip];
      m[im] = beta1 * m[im] + rest1 * g;
      v[iv] = beta2 * v[iv] + rest2 * g * g;
      p[ip] = p[ip] * shrink - step_size * (m[im] / (std::sqrt(v[iv]) / root + eps));
      if constexpr (UpdateViews<T>::has_copy) copy[ic] = convert<T>(p[ip]);
    };
    if (dense) {
      for (int64_t i = 0; i < n; ++i) element(i, i, i, i, i);
    } else {
      for (int64_t i = 0; i < n; ++i) element(i * s[0], i * s[1], i * s[2], i * s[3], i * s[4]);
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(AdamArgs)

template <class T>
static void kernel(const SquareSumArgs<T>& a) {
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
GABLE_CPU_KERNEL(SquareSumArgs<float>)
GABLE_CPU_KERNEL(SquareSumArgs<double>)

}  // namespace gable
