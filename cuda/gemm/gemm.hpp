// SPDX-License-Identifier: Apache-2.0
// The one matrix product of the CUDA backend, used by matmul and convolution.
#pragma once

#include <cstdint>
#include <optional>

#include "gable/core/device.hpp"
#include "gable/core/dtype.hpp"

namespace gable::cuda {

/// Element (i, j) of matrix l of a batch is data[i * rs + j * cs + l * step].
template <class T>
struct Matrix {
  T* data = nullptr;
  int64_t rs = 0;
  int64_t cs = 0;
  int64_t step = 0;

  [[nodiscard]] Matrix transposed() const { return {data, cs, rs, step}; }
};

/// Element j of the bias of matrix l is data[j * stride + l * step]; none without data.
template <class T>
struct Bias {
  const T* data = nullptr;
  int64_t stride = 1;
  int64_t step = 0;
};

/// out (m, n) = a (m, k) b (k, n) + bias (n), or out += a b, for each matrix of the batch.
template <class T, class Out>
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  Matrix<const T> a;
  Matrix<const T> b;
  Matrix<Out> out;
  Bias<T> bias = {};
  bool accumulate = false;
};

/// How a matrix lies in memory for the library: by rows or, transposed, by columns, a leading
/// dimension apart.
struct Leading {
  bool by_columns = false;
  int64_t ld = 1;
};
/// nullopt where neither stride is 1 or lines overlap.
[[nodiscard]] std::optional<Leading> leading(int64_t rows, int64_t cols, int64_t rs, int64_t cs);

/// Runs a product. Matrices of floats must have a leading(), steps be 0 or more; integers may
/// have any strides and wrap. `out` must not overlap the others. 16-bit types accumulate in float
/// and are rounded once.
template <class T, class Out>
void gemm(const Gemm<T, Out>& product, const Stream& stream);

/// The part of gemm() for integers; in integer.cu.
template <class T>
void integer_gemm(const Gemm<T, T>& product, const Stream& stream);

}  // namespace gable::cuda
