// SPDX-License-Identifier: Apache-2.0
// Conversion between storage and compute types by the device's instructions, and packs of
// neighbouring elements that are loaded and stored at once.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "gable/core/dtype.hpp"

namespace gable::cuda {

/// Storage to compute type: half and bfloat16 to float.
template <class T>
__device__ __forceinline__ Compute<T> widen(T value) {
  if constexpr (std::is_same_v<T, bfloat16>)
    return __uint_as_float(static_cast<uint32_t>(value.bits) << 16);
  else if constexpr (std::is_same_v<T, half>)
    return __half2float(__ushort_as_half(value.bits));
  else
    return value;
}

/// Compute to storage type, to the nearest even.
template <class T>
__device__ __forceinline__ T narrow(Compute<T> value) {
  if constexpr (std::is_same_v<T, bfloat16>) {
    bfloat16 out;
    out.bits = __bfloat16_as_ushort(__float2bfloat16_rn(value));
    return out;
  } else if constexpr (std::is_same_v<T, half>) {
    half out;
    out.bits = __half_as_ushort(__float2half_rn(value));
    return out;
  } else {
    return value;
  }
}

/// N neighbours of type T, aligned to their size (at most 16 bytes), so that one instruction
/// moves them.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
};

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int kPackSize = static_cast<int>(16 / sizeof(T));

}  // namespace gable::cuda
