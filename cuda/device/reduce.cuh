// SPDX-License-Identifier: Apache-2.0
// Reductions of one value a thread over groups of lanes, warps and blocks, in a fixed order.
#pragma once

#include <cstdint>
#include <cstring>

namespace gable::cuda {

inline constexpr int kWarp = 32;

/// `value` of the lane whose number differs in the bits of `mask`; for any trivial type.
template <class S>
__device__ __forceinline__ S shuffle_xor(const S& value, int mask) {
  constexpr int words = (sizeof(S) + 3) / 4;
  uint32_t raw[words] = {};
  memcpy(raw, &value, sizeof(S));
#pragma unroll
  for (int w = 0; w < words; ++w) raw[w] = __shfl_xor_sync(0xffffffffU, raw[w], mask);
  S other;
  memcpy(&other, raw, sizeof(S));
  return other;
}

/// Combines the values of each group of `lanes` (a power of two, at most 32) neighbours; all 32
/// lanes must call. Every lane gets the result, of the same bits if `combine` is commutative.
template <class S, class F>
__device__ __forceinline__ S warp_reduce(S value, const F& combine, int lanes = kWarp) {
  for (int mask = lanes / 2; mask > 0; mask /= 2) value = combine(value, shuffle_xor(value, mask));
  return value;
}

/// Combines the values of all threads of a block of whole warps, at most 1024, counted by
/// threadIdx.x. Every thread gets the same bits.
template <class S, class F>
__device__ __forceinline__ S block_reduce(S value, const F& combine) {
  __shared__ alignas(16) unsigned char memory[kWarp * sizeof(S)];
  S* shared = reinterpret_cast<S*>(memory);
  value = warp_reduce(value, combine);
  __syncthreads();  // an earlier call may still be reading
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = value;
  __syncthreads();
  S result = shared[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / kWarp; ++w)
    result = combine(result, shared[w]);
  return result;
}

/// Over a group of `lanes` neighbours if that is at most a warp, else over the block.
template <class S, class F>
__device__ __forceinline__ S group_reduce(const S& value, const F& combine, int lanes) {
  return lanes <= kWarp ? warp_reduce(value, combine, lanes) : block_reduce(value, combine);
}

struct Add {
  template <class S>
  __device__ __forceinline__ S operator()(S a, S b) const {
    return a + b;
  }
};
/// Larger value; NaN may be passed over.
struct Larger {
  template <class S>
  __device__ __forceinline__ S operator()(S a, S b) const {
    return b > a ? b : a;
  }
};

}  // namespace gable::cuda
