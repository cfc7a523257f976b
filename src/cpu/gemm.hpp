// SPDX-License-Identifier: Apache-2.0
// The one matrix product of the CPU backend, used by matmul and convolution.
#pragma once

#include <cstdint>

#include "gable/core/dtype.hpp"

namespace gable::cpu {

/// Element (i, j) is data[i * rs + j * cs]; any strides, also 0 and negative.
template <class T>
struct Matrix {
  T* data;
  int64_t rs;
  int64_t cs;

  [[nodiscard]] Matrix at(int64_t i, int64_t j) const { return {data + i * rs + j * cs, rs, cs}; }
  [[nodiscard]] Matrix transposed() const { return {data, cs, rs}; }
};

/// What the product is added to: nothing, c itself, or a bias vector over the columns.
template <class T>
struct GemmOptions {
  bool accumulate = false;
  const T* bias = nullptr;
  int64_t bias_stride = 1;
};

/// c (m, n) = a (m, k) b (k, n) + ...; c must not overlap the others. 16-bit types are converted
/// a panel at a time and accumulate in float. Threaded unless called inside parallel_for; the
/// result does not depend on the number of threads.
template <class T, class Out>
void gemm(int64_t m, int64_t n, int64_t k, const Matrix<const T>& a, const Matrix<const T>& b,
          const Matrix<Out>& c, const GemmOptions<T>& options = {});

}  // namespace gable::cpu
