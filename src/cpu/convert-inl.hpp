// SPDX-License-Identifier: Apache-2.0
// Rows between storage types and compute types: half and bfloat16 are widened a tile at a time,
// strided elements are gathered, so that the loops over operators see dense compute types only.
#pragma once

#include <cstdint>

#include "gable/core/dtype.hpp"

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace gable::cpu {

/// Elements of a tile: a few of them stay in the first-level cache.
inline constexpr int64_t kTile = 256;

inline void widen(const bfloat16* in, float* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

inline void widen(const half* in, float* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i))));
#endif
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]);
}

inline void narrow(const float* in, bfloat16* out, int64_t n) {
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) out[i] = bfloat16(in[i]);
}

inline void narrow(const float* in, half* out, int64_t n) {
  int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
#endif
  for (; i < n; ++i) out[i] = half(in[i]);
}

/// `n` <= kTile elements from `stride` apart, as dense compute values: `in` itself where it is
/// that already, else `buffer`.
template <class T>
const Compute<T>* load_tile(const T* in, int64_t stride, int64_t n, Compute<T>* buffer) {
  if constexpr (SmallFloat<T>) {
    if (stride == 1) {
      widen(in, buffer, n);
      return buffer;
    }
  } else if (stride == 1) {
    return in;
  }
  if (stride == 0) {
    const auto value = convert<Compute<T>>(*in);
    for (int64_t i = 0; i < n; ++i) buffer[i] = value;
  } else if constexpr (SmallFloat<T>) {
    T gathered[kTile];
    for (int64_t i = 0; i < n; ++i) gathered[i] = in[i * stride];
    widen(gathered, buffer, n);
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = in[i * stride];
  }
  return buffer;
}

/// Where a tile's results go: `out` itself where it takes dense compute values, else `buffer`,
/// which store_tile() then writes out.
template <class T>
Compute<T>* tile_target(T* out, int64_t stride, Compute<T>* buffer) {
  if constexpr (!SmallFloat<T>) {
    if (stride == 1) return out;
  }
  return buffer;
}

template <class T>
void store_tile(const Compute<T>* tile, T* out, int64_t stride, int64_t n) {
  if constexpr (SmallFloat<T>) {
    if (stride == 1) {
      narrow(tile, out, n);
    } else {
      T narrowed[kTile];
      narrow(tile, narrowed, n);
      for (int64_t i = 0; i < n; ++i) out[i * stride] = narrowed[i];
    }
  } else {
    if (tile == out) return;
    for (int64_t i = 0; i < n; ++i) out[i * stride] = tile[i];
  }
}

}  // namespace gable::cpu
