// SPDX-License-Identifier: Apache-2.0
// Optimizer updates: one pass reads the gradient, updates state and master, and writes the compute
// copy.
#include "gable/ops/optimizer.hpp"

#include <type_traits>

#include "elementwise.cuh"

namespace gable {
namespace {

template <class C>
struct PlainSgdUpdate {
  static constexpr int kStates = 0;
  C lr, decay, scale;
  __device__ __forceinline__ C operator()(C p, C gradient, C*) const {
    return p - lr * (gradient * scale + decay * p);
  }
};

template <class C>
struct MomentumSgdUpdate {
  static constexpr int kStates = 1;
  C lr, momentum, damped, decay, scale;
  bool first, nesterov;
  __device__ __forceinline__ C operator()(C p, C gradient, C* buffer) const {
    const C g = gradient * scale + decay * p;
    const C b = first ? g : momentum * *buffer + damped * g;
    *buffer = b;
    return p - lr * (nesterov ? g + momentum * b : b);
  }
};

template <class C>
struct AdamUpdate {
  static constexpr int kStates = 2;
  C beta1, rest1, beta2, rest2, eps, step_size, inverse_root, shrink, decay, scale;
  __device__ __forceinline__ C operator()(C p, C gradient, C* states) const {
    const C g = gradient * scale + decay * p;
    const C m = beta1 * states[0] + rest1 * g;
    const C v = beta2 * states[1] + rest2 * g * g;
    states[0] = m;
    states[1] = v;
    return p * shrink - step_size * (m / (::sqrt(v) * inverse_root + eps));
  }
};

// The update as a function of elementwise operands: outputs master, states, compute copy (16-bit
// types only), inputs master, gradient, states.
template <class U, class C, bool kCopy>
struct Apply;
template <class U, class C>
struct Apply<U, C, false> {
  U update;
  __device__ __forceinline__ void operator()(C& p, C old, C g) const {
    p = update(old, g, nullptr);
  }
  __device__ __forceinline__ void operator()(C& p, C& s, C old, C g, C old_s) const {
    s = old_s;
    p = update(old, g, &s);
  }
  __device__ __forceinline__ void operator()(C& p, C& s, C& t, C old, C g, C old_s, C old_t) const {
    C states[2] = {old_s, old_t};
    p = update(old, g, states);
    s = states[0];
    t = states[1];
  }
};
template <class U, class C>
struct Apply<U, C, true> {
  U update;
  __device__ __forceinline__ void operator()(C& p, C& copy, C old, C g) const {
    copy = p = update(old, g, nullptr);
  }
  __device__ __forceinline__ void operator()(C& p, C& s, C& copy, C old, C g, C old_s) const {
    s = old_s;
    copy = p = update(old, g, &s);
  }
  __device__ __forceinline__ void operator()(C& p, C& s, C& t, C& copy, C old, C g, C old_s,
                                             C old_t) const {
    C states[2] = {old_s, old_t};
    copy = p = update(old, g, states);
    s = states[0];
    t = states[1];
  }
};

template <class View>
using StoredIn = std::remove_pointer_t<decltype(View::data)>;

// Views in the order of the operands, as a loop and as addresses.
template <class Outs, class Ins, class F, class... Views>
void run_views(const Stream& stream, const F& f, const Views&... views) {
  constexpr int kViews = sizeof...(Views);
  const StridedLoop<kViews> loop({&views.layout...});
  cuda::elementwise<Outs, Ins>(stream, loop, cuda::Addresses<kViews>{{cuda::address(views)...}}, f);
}

template <class T, class U, class... States>
void run_update(const Stream& stream, const U& update, const UpdateViews<T>& at,
                const States&... states) {
  using C = Compute<T>;
  static_assert(U::kStates == sizeof...(States));
  using Ins = TypeList<C, C, StoredIn<States>...>;
  if constexpr (UpdateViews<T>::has_copy) {
    using Outs = TypeList<C, StoredIn<States>..., T>;
    run_views<Outs, Ins>(stream, Apply<U, C, true>{update}, at.master, states..., at.value,
                         at.master, at.gradient, states...);
  } else {
    using Outs = TypeList<C, StoredIn<States>...>;
    run_views<Outs, Ins>(stream, Apply<U, C, false>{update}, at.master, states..., at.master,
                         at.gradient, states...);
  }
}

}  // namespace

template <class T>
static void kernel(const SgdArgs<T>& a, const Stream& stream) {
  using C = Compute<T>;
  const auto lr = static_cast<C>(a.lr);
  const auto decay = static_cast<C>(a.weight_decay);
  const auto scale = static_cast<C>(a.gradient_scale);
  if (a.momentum == 0) {
    run_update(stream, PlainSgdUpdate<C>{lr, decay, scale}, a.at);
  } else {
    run_update(stream,
               MomentumSgdUpdate<C>{lr, static_cast<C>(a.momentum), static_cast<C>(1 - a.dampening),
                                    decay, scale, a.first, a.nesterov},
               a.at, a.buffer);
  }
}

template <class T>
static void kernel(const AdamArgs<T>& a, const Stream& stream) {
  using C = Compute<T>;
  const AdamUpdate<C> update{static_cast<C>(a.beta1),        static_cast<C>(1 - a.beta1),
                             static_cast<C>(a.beta2),        static_cast<C>(1 - a.beta2),
                             static_cast<C>(a.eps),          static_cast<C>(a.step_size),
                             static_cast<C>(1 / a.root),     static_cast<C>(a.shrink),
                             static_cast<C>(a.weight_decay), static_cast<C>(a.gradient_scale)};
  run_update(stream, update, a.at, a.mean, a.square);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(SgdArgs)
GABLE_CUDA_KERNEL_FLOATS(AdamArgs)
