// SPDX-License-Identifier: Apache-2.0
// Sums and moments that the norms share: vectorizable blocks in the compute type, combined in
// double.
#pragma once

#include <cstdint>

#include "gable/core/dtype.hpp"

namespace gable::cpu {

/// Values summed in the compute type (in 16 lanes) before the sum goes on in double.
inline constexpr int64_t kSumBlock = 512;

/// Sum of f(0) .. f(n-1) in C, by 16 independent lanes that the compiler makes vectors of.
template <class C, class F>
double block_sum(int64_t n, F&& f) {
  constexpr int64_t lanes = 16;
  C sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t j = 0; j < lanes; ++j) sums[j] += f(i + j);
  for (int64_t j = 0; i + j < n; ++j) sums[j] += f(i + j);
  double total = 0;
  for (const C s : sums) total += static_cast<double>(s);
  return total;
}

/// Sum over any n, block by block.
template <class C, class F>
double long_sum(int64_t n, F&& f) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += kSumBlock) {
    const int64_t size = n - begin < kSumBlock ? n - begin : kSumBlock;
    total += block_sum<C>(size, [&](int64_t i) { return f(begin + i); });
  }
  return total;
}

/// Count, mean and sum of squared deviations.
struct Moments {
  double n = 0;
  double mean = 0;
  double m2 = 0;

  /// Chan, Golub & LeVeque (1979): combines two disjoint sets.
  void add(const Moments& b) {
    if (b.n == 0) return;
    const double both = n + b.n;
    const double delta = b.mean - mean;
    mean += delta * (b.n / both);
    m2 += b.m2 + delta * delta * (n * b.n / both);
    n = both;
  }
  /// A block of `count` values with s1 = sum (x - shift), s2 = sum (x - shift)^2, where shift is
  /// the block's mean up to rounding; s1 corrects that rounding.
  void add_block(double count, double shift, double s1, double s2) {
    const double m = s2 - s1 * s1 / count;
    add({count, shift + s1 / count, m > 0 || m != m ? m : 0.0});
  }
};

/// Moments of n <= kSumBlock strided values in two passes.
template <class T>
Moments block_moments(const T* x, int64_t n, int64_t step) {
  using C = Compute<T>;
  auto sums = [&](auto at) {
    const auto count = static_cast<double>(n);
    const C shift = static_cast<C>(block_sum<C>(n, at) / count);
    const double s1 = block_sum<C>(n, [&](int64_t i) { return at(i) - shift; });
    const double s2 = block_sum<C>(n, [&](int64_t i) {
      const C d = at(i) - shift;
      return d * d;
    });
    Moments m;
    m.add_block(count, static_cast<double>(shift), s1, s2);
    return m;
  };
  if (step == 1) return sums([x](int64_t i) { return convert<C>(x[i]); });
  return sums([x, step](int64_t i) { return convert<C>(x[i * step]); });
}

}  // namespace gable::cpu
