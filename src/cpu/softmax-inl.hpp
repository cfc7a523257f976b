// SPDX-License-Identifier: Apache-2.0
// What softmax and cross-entropy share: lines in dense buffers of the compute type, either one
// line (Width 1) or kLineBlock neighbouring ones side by side, (length, Width).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gable/core/dtype.hpp"
#include "gable/ops/math.hpp"
#include "lines.hpp"
#include "norm.hpp"

namespace gable::cpu {

// `count` neighbouring lines as (length, kLineBlock) in a dense buffer, or one line as (length).
template <class T, class C>
void load_lines(C* __restrict to, const T* from, int64_t length, int64_t step, int64_t count,
                int64_t neighbour, bool wide) {
  if (!wide) {
    if (step == 1) {
      for (int64_t i = 0; i < length; ++i) to[i] = convert<C>(from[i]);
    } else {
      for (int64_t i = 0; i < length; ++i) to[i] = convert<C>(from[i * step]);
    }
    return;
  }
  for (int64_t i = 0; i < length; ++i, from += step, to += kLineBlock) {
    for (int64_t j = 0; j < count; ++j) to[j] = convert<C>(from[j * neighbour]);
    for (int64_t j = count; j < kLineBlock; ++j) to[j] = C(0);
  }
}
template <class T, class C>
void store_lines(T* to, const C* __restrict from, int64_t length, int64_t step, int64_t count,
                 int64_t neighbour, bool wide) {
  if (!wide) {
    if (step == 1) {
      for (int64_t i = 0; i < length; ++i) to[i] = convert<T>(from[i]);
    } else {
      for (int64_t i = 0; i < length; ++i) to[i * step] = convert<T>(from[i]);
    }
    return;
  }
  for (int64_t i = 0; i < length; ++i, to += step, from += kLineBlock)
    for (int64_t j = 0; j < count; ++j) to[j * neighbour] = convert<T>(from[j]);
}

// Sums of value(0) .. value(length * Width - 1) by column, in double.
template <int64_t Width, class C, class F>
void line_sums(double* __restrict sums, int64_t length, F&& value) {
  if constexpr (Width == 1) {
    sums[0] = long_sum<C>(length, value);
  } else {
    for (int64_t j = 0; j < Width; ++j) sums[j] = 0;
    for (int64_t i = 0; i < length; ++i)
      for (int64_t j = 0; j < Width; ++j) sums[j] += static_cast<double>(value(i * Width + j));
  }
}

// Sums of exp(x) by column; x becomes exp(x) if `keep`.
template <int64_t Width, class C>
void exp_sums(double* __restrict sums, C* __restrict x, int64_t length, bool keep) {
  constexpr int64_t rows = kSumBlock / Width;
  C e[kSumBlock];
  for (int64_t j = 0; j < Width; ++j) sums[j] = 0;
  for (int64_t begin = 0; begin < length; begin += rows) {
    const int64_t n = std::min(rows, length - begin);
    C* __restrict from = x + begin * Width;
    for (int64_t i = 0; i < n * Width; ++i) e[i] = math::exp(from[i]);
    double part[Width];
    line_sums<Width, C>(part, n, [&e](int64_t i) { return e[i]; });
    for (int64_t j = 0; j < Width; ++j) sums[j] += part[j];
    if (keep) std::copy_n(e, n * Width, from);
  }
}

// Largest value of each column; NaN may be passed over, since it comes back through exp.
template <int64_t Width, class C>
void line_max(C* __restrict top, const C* __restrict x, int64_t length) {
  constexpr int64_t lanes = 16;
  C best[lanes];
  for (C& b : best) b = -std::numeric_limits<C>::infinity();
  int64_t i = 0;
  const int64_t total = length * Width;
  for (; i + lanes <= total; i += lanes)
    for (int64_t j = 0; j < lanes; ++j) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
  if constexpr (Width == 1) {
    for (; i < total; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
    for (int64_t j = 1; j < lanes; ++j) best[0] = best[j] > best[0] ? best[j] : best[0];
  }
  for (int64_t j = 0; j < Width; ++j) top[j] = best[j];
}

// lse = log(sum(exp(x))) by column; x becomes x - max(x), or x where that is not finite.
template <int64_t Width, class C>
void log_sum_exp(double* __restrict lse, C* __restrict x, int64_t length) {
  C top[Width];
  line_max<Width>(top, x, length);
  for (int64_t j = 0; j < Width; ++j) top[j] = top[j] - top[j] == C(0) ? top[j] : C(0);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < Width; ++j) x[i * Width + j] -= top[j];
  exp_sums<Width>(lse, x, length, false);
  for (int64_t j = 0; j < Width; ++j) lse[j] = math::log(lse[j]) + static_cast<double>(top[j]);
}

// x = exp(x - shift) * factor by column.
template <int64_t Width, class C>
void exp_times(C* __restrict x, const C* __restrict shift, const C* __restrict factor,
               int64_t length) {
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < Width; ++j) x[i * Width + j] -= shift[j];
  for (int64_t i = 0; i < length * Width; ++i) x[i] = math::exp(x[i]);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < Width; ++j) x[i * Width + j] *= factor[j];
}

}  // namespace gable::cpu
