// SPDX-License-Identifier: Apache-2.0
// What the forward and the backward of layer norm and RMS norm share.
#pragma once

#include <cmath>
#include <cstdint>

#include "device/numeric.cuh"
#include "device/reduce.cuh"
#include "device/rows.cuh"
#include "device/strided.cuh"
#include "gable/ops/layer_norm.hpp"
#include "kernel.hpp"
#include "runtime/sub_layout.hpp"

namespace gable::cuda {

/// The leading dimensions: one element a row.
inline Layout rows_of(const Layout& layout, int inner_rank) {
  return sub_layout(layout, [&](int d) { return d < layout.rank() - inner_rank; });
}
/// The elements of a row.
inline Layout row_of(const Layout& layout, int inner_rank) {
  return sub_layout(layout, [&](int d) { return d >= layout.rank() - inner_rank; });
}

/// Two sums at once.
struct TwoSums {
  double a = 0;
  double b = 0;
};
struct AddTwo {
  __device__ __forceinline__ TwoSums operator()(const TwoSums& p, const TwoSums& q) const {
    return {p.a + q.a, p.b + q.b};
  }
};

/// xhat = ((x - high) - low) * rstd, where high + low is the mean in twice the precision.
template <class C>
struct Normalize {
  C high;
  C low;
  C rstd;
  __device__ __forceinline__ Normalize(double mean, C r)
      : high(static_cast<C>(mean)),
        low(static_cast<C>(mean - static_cast<double>(high))),
        rstd(r) {}
  __device__ __forceinline__ C operator()(C x) const { return ((x - high) - low) * rstd; }
};

/// Mean and 1 / sqrt(mean square + eps) from s1 = sum (x - shift) and s2 = sum (x - shift)^2, where
/// shift is the mean up to rounding, which s1 corrects.
template <bool Center, class C>
__device__ __forceinline__ Normalize<C> normalize_by(const TwoSums& s, C shift, int64_t n,
                                                     double eps, double& mean) {
  const auto count = static_cast<double>(n);
  double m2 = s.b;
  mean = 0;
  if constexpr (Center) {
    mean = static_cast<double>(shift) + s.a / count;
    m2 -= s.a * s.a / count;
    if (m2 < 0) m2 = 0;
  }
  return Normalize<C>(mean, static_cast<C>(1 / std::sqrt(m2 / count + eps)));
}

/// V neighbours of gamma or beta, from whole packs of 16 bytes where V > 1; `absent` if null.
template <class C, int V>
__device__ __forceinline__ void load_affine(C (&values)[V], const C* from, int64_t i, C absent) {
  constexpr int width = V < kPackSize<C> ? V : kPackSize<C>;
#pragma unroll
  for (int p = 0; p < V / width; ++p) {
    if (from != nullptr) {
      const auto pack = *reinterpret_cast<const Pack<C, width>*>(from + i + p * width);
#pragma unroll
      for (int v = 0; v < width; ++v) values[p * width + v] = pack.values[v];
    } else {
#pragma unroll
      for (int v = 0; v < width; ++v) values[p * width + v] = absent;
    }
  }
}
/// Whether load_affine may take packs.
inline bool affine_packed(const void* data) { return reinterpret_cast<uintptr_t>(data) % 16 == 0; }

}  // namespace gable::cuda
