// SPDX-License-Identifier: Apache-2.0
// Optimizer updates: one pass reads gradients, updates states and masters, and writes compute
// copies, for many parameters in one kernel.
#include "gable/ops/optimizer.hpp"

#include <type_traits>

#include "device/many.cuh"
#include "device/numeric.cuh"
#include "kernel.hpp"
#include "runtime/staging.hpp"

namespace gable {
namespace cuda {
namespace {

template <class C>
struct SgdUpdate {
  static constexpr int kStates = 1;  // not touched without momentum
  C lr, momentum, damped, decay, scale;
  bool has_momentum, nesterov;
  UpdateScalars control;

  struct Prepared {
    C scale;
    bool first;
  };
  __device__ Prepared prepare(int64_t steps) const {
    return {scale * static_cast<C>(control.scale_factor()), control.effective_step(steps) == 1};
  }
  __device__ __forceinline__ C operator()(const Prepared& now, C p, C gradient, C* states) const {
    const C g = gradient * now.scale + decay * p;
    if (!has_momentum) return p - lr * g;
    const C b = now.first ? g : momentum * states[0] + damped * g;
    states[0] = b;
    return p - lr * (nesterov ? g + momentum * b : b);
  }
};

template <class C>
struct AdamUpdate {
  static constexpr int kStates = 2;
  C beta1, rest1, beta2, rest2, eps, shrink, decay, scale;
  double lr, exact_beta1, exact_beta2;
  UpdateScalars control;

  struct Prepared {
    C scale, step_size, inverse_root;
  };
  __device__ Prepared prepare(int64_t steps) const {
    const auto t = static_cast<double>(control.effective_step(steps));
    return {scale * static_cast<C>(control.scale_factor()),
            static_cast<C>(lr / (1 - ::pow(exact_beta1, t))),
            static_cast<C>(1 / ::sqrt(1 - ::pow(exact_beta2, t)))};
  }
  __device__ __forceinline__ C operator()(const Prepared& now, C p, C gradient, C* states) const {
    const C g = gradient * now.scale + decay * p;
    const C m = beta1 * states[0] + rest1 * g;
    const C v = beta2 * states[1] + rest2 * g * g;
    states[0] = m;
    states[1] = v;
    return p * shrink - now.step_size * (m / (::sqrt(v) * now.inverse_root + eps));
  }
};

// One parameter's addresses. A state that the update does not have is null.
template <class T, int kStates>
struct Parameter {
  using C = Compute<T>;
  C* master;
  const C* gradient;
  C* states[kStates];
  T* copy;  // null for float and double
  int64_t count;
  int64_t steps;
  bool aligned;  // every address to four elements
};

constexpr int kThreads = 256;
constexpr int kWidth = 4;  // elements a thread and turn
constexpr int kTurns = 2;
constexpr int64_t kBlockElements = int64_t{kThreads} * kWidth * kTurns;

template <class T, class U>
__global__ void __launch_bounds__(kThreads)
    update_kernel(const U update, const Many<Parameter<T, U::kStates>> many) {
  using C = Compute<T>;
  if (update.control.is_skipped()) return;
  const int item = many.item_of(blockIdx.x);
  const Parameter<T, U::kStates>& p = many.items[item];
  // pow() once a block, not once an element
  __shared__ typename U::Prepared shared;
  if (threadIdx.x == 0) shared = update.prepare(p.steps);
  __syncthreads();
  const typename U::Prepared now = shared;
  const int64_t block = (blockIdx.x - many.first_block(item)) * kBlockElements;
#pragma unroll
  for (int turn = 0; turn < kTurns; ++turn) {
    const int64_t at = block + (int64_t{turn} * kThreads + threadIdx.x) * kWidth;
    if (at >= p.count) return;
    if (p.aligned && at + kWidth <= p.count) {
      using Wide = Pack<C, kWidth>;
      Wide master = *reinterpret_cast<const Wide*>(p.master + at);
      const Wide gradient = *reinterpret_cast<const Wide*>(p.gradient + at);
      Wide states[U::kStates] = {};
#pragma unroll
      for (int s = 0; s < U::kStates; ++s)
        if (p.states[s] != nullptr) states[s] = *reinterpret_cast<const Wide*>(p.states[s] + at);
      Pack<T, kWidth> copy;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        C own[U::kStates];
#pragma unroll
        for (int s = 0; s < U::kStates; ++s) own[s] = states[s].values[i];
        master.values[i] = update(now, master.values[i], gradient.values[i], own);
#pragma unroll
        for (int s = 0; s < U::kStates; ++s) states[s].values[i] = own[s];
        copy.values[i] = narrow<T>(master.values[i]);
      }
      *reinterpret_cast<Wide*>(p.master + at) = master;
#pragma unroll
      for (int s = 0; s < U::kStates; ++s)
        if (p.states[s] != nullptr) *reinterpret_cast<Wide*>(p.states[s] + at) = states[s];
      if (UpdateViews<T>::has_copy) *reinterpret_cast<Pack<T, kWidth>*>(p.copy + at) = copy;
      continue;
    }
    const int64_t end = at + kWidth < p.count ? at + kWidth : p.count;
    for (int64_t i = at; i < end; ++i) {
      C own[U::kStates] = {};
      for (int s = 0; s < U::kStates; ++s)
        if (p.states[s] != nullptr) own[s] = p.states[s][i];
      const C value = update(now, p.master[i], p.gradient[i], own);
      p.master[i] = value;
      for (int s = 0; s < U::kStates; ++s)
        if (p.states[s] != nullptr) p.states[s][i] = own[s];
      if (UpdateViews<T>::has_copy) p.copy[i] = narrow<T>(value);
    }
  }
}

// --- from argument structs

template <class T>
SgdUpdate<Compute<T>> update_of(const SgdArgs<T>& a) {
  using C = Compute<T>;
  return {static_cast<C>(a.lr),
          static_cast<C>(a.momentum),
          static_cast<C>(1 - a.dampening),
          static_cast<C>(a.weight_decay),
          static_cast<C>(a.gradient_scale),
          a.momentum != 0,
          a.nesterov,
          UpdateScalars(a.control)};
}
template <class T>
AdamUpdate<Compute<T>> update_of(const AdamArgs<T>& a) {
  using C = Compute<T>;
  return {static_cast<C>(a.beta1),
          static_cast<C>(1 - a.beta1),
          static_cast<C>(a.beta2),
          static_cast<C>(1 - a.beta2),
          static_cast<C>(a.eps),
          static_cast<C>(a.shrink),
          static_cast<C>(a.weight_decay),
          static_cast<C>(a.gradient_scale),
          a.lr,
          a.beta1,
          a.beta2,
          UpdateScalars(a.control)};
}

// True where one launch can serve both: all but the views and the count of steps is equal.
template <class T>
bool same_settings(const SgdArgs<T>& a, const SgdArgs<T>& b) {
  return a.lr == b.lr && a.momentum == b.momentum && a.dampening == b.dampening &&
         a.weight_decay == b.weight_decay && a.gradient_scale == b.gradient_scale &&
         a.nesterov == b.nesterov;
}
template <class T>
bool same_settings(const AdamArgs<T>& a, const AdamArgs<T>& b) {
  return a.lr == b.lr && a.beta1 == b.beta1 && a.beta2 == b.beta2 && a.eps == b.eps &&
         a.shrink == b.shrink && a.weight_decay == b.weight_decay &&
         a.gradient_scale == b.gradient_scale;
}

template <class T>
TensorView<Compute<T>> state_of(const SgdArgs<T>& a, int) {
  return a.momentum != 0 ? a.buffer : TensorView<Compute<T>>{};
}
template <class T>
TensorView<Compute<T>> state_of(const AdamArgs<T>& a, int index) {
  return index == 0 ? a.mean : a.square;
}

// A call whose views lie in memory without gaps and in the master's order.
template <class T, int kStates, class Args>
Parameter<T, kStates> parameter_of(const Args& a, Staging& staging) {
  const Layout order = a.at.master.layout.like();
  Parameter<T, kStates> p{};
  p.count = a.at.numel();
  p.steps = a.steps;
  p.aligned = true;
  auto take = [&](const auto& view, bool changes) {
    const auto there = staging.in_order(view, order, changes);
    const auto pack = kWidth * sizeof(*there.data);
    p.aligned &= reinterpret_cast<uintptr_t>(there.data) % pack == 0;
    return there.data;
  };
  p.master = take(a.at.master, true);
  p.gradient = take(a.at.gradient, false);
  for (int s = 0; s < kStates; ++s)
    if (const auto state = state_of(a, s); state.data != nullptr) p.states[s] = take(state, true);
  if constexpr (UpdateViews<T>::has_copy) p.copy = take(a.at.value, true);
  return p;
}

template <class T, class Args>
void run_updates(std::span<const Args> calls, const Stream& stream) {
  using U = decltype(update_of(calls.front()));
  for (size_t begin = 0; begin < calls.size();) {
    size_t end = begin + 1;
    while (end < calls.size() && same_settings(calls[begin], calls[end])) ++end;
    Staging staging(stream);
    std::vector<Parameter<T, U::kStates>> items;
    std::vector<int64_t> blocks;
    for (const Args& a : calls.subspan(begin, end - begin)) {
      if (a.at.numel() == 0) continue;
      items.push_back(parameter_of<T, U::kStates>(a, staging));
      blocks.push_back((a.at.numel() + kBlockElements - 1) / kBlockElements);
    }
    const U update = update_of(calls[begin]);
    launch_many(items, blocks, kThreads, [&](const Grid& grid, const auto& many) {
      launch(stream, grid, update_kernel<T, U>, update, many);
    });
    staging.write_back();
    begin = end;
  }
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const ManyArgs<SgdArgs<T>>& args, const Stream& stream) {
  cuda::run_updates<T>(args.calls, stream);
}
template <class T>
static void kernel(const ManyArgs<AdamArgs<T>>& args, const Stream& stream) {
  cuda::run_updates<T>(args.calls, stream);
}
GABLE_CUDA_KERNEL_FLOATS(SgdManyArgs)
GABLE_CUDA_KERNEL_FLOATS(AdamManyArgs)

}  // namespace gable
