// SPDX-License-Identifier: Apache-2.0
// What the losses of pairs of values share, forward and backward.
#pragma once

#include <type_traits>

#include "device/elementwise.cuh"
#include "gable/ops/loss.hpp"
#include "kernel.hpp"

namespace gable::cuda {

/// Whether F reads a weight.
template <class F>
inline constexpr bool kWeighted = std::is_same_v<F, BceLoss>;

template <class F>
struct PairForward {
  template <class V>
  __device__ __forceinline__ void operator()(V& loss, V x, V target, V weight = V(1)) const {
    loss = F::fwd(x, target, weight);
  }
};
/// By x, or with Target by the target.
template <class F, bool Target>
struct PairBackward {
  double scale;
  template <class V>
  __device__ __forceinline__ void operator()(V& out, V x, V target, V dy, V weight = V(1)) const {
    const V slope = Target ? F::dtarget(x, target, weight) : F::dx(x, target, weight);
    out = static_cast<V>(static_cast<double>(dy) * scale) * slope;
  }
};

template <class T>
void* untyped(T* data) {
  return const_cast<void*>(static_cast<const void*>(data));
}

}  // namespace gable::cuda
