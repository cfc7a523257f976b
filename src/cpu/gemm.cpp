// SPDX-License-Identifier: Apache-2.0
// gemm on Eigen, in fixed blocks of the result so that threads cannot change a bit.
#include "gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "eigen.hpp"
#include "gable/core/parallel.hpp"
#include "scratch.hpp"
#include "simd.hpp"

namespace gable::cpu {

namespace {

constexpr int64_t kTile = 256;   // rows and columns of a block of c; fixed, see above
constexpr int64_t kDepth = 512;  // inner size of a converted panel

template <class T, int Order>
using Map =
    eigen::Map<std::conditional_t<std::is_const_v<T>,
                                  const eigen::Matrix<std::remove_const_t<T>, eigen::Dynamic,
                                                      eigen::Dynamic, Order>,
                                  eigen::Matrix<T, eigen::Dynamic, eigen::Dynamic, Order>>,
               0, eigen::OuterStride<>>;

// Calls f with an Eigen map of x, which has a unit stride along rows or columns.
template <class T, class F>
void with_map(const Matrix<const T>& x, int64_t rows, int64_t cols, F&& f) {
  if (x.cs == 1)
    f(Map<const T, eigen::RowMajor>(x.data, rows, cols, eigen::OuterStride<>(x.rs)));
  else
    f(Map<const T, eigen::ColMajor>(x.data, rows, cols, eigen::OuterStride<>(x.cs)));
}

// Eigen's products take a unit stride in one direction and a positive one in the other that is
// at least the size; everything else goes through panels.
template <class T>
bool is_direct(const Matrix<T>& x, int64_t rows, int64_t cols) {
  return (x.cs == 1 && x.rs >= cols) || (x.rs == 1 && x.cs >= rows);
}

// Strides of size-1 dimensions mean nothing; gives them the value that makes vectors direct.
template <class T>
Matrix<T> normalised(const Matrix<T>& x, int64_t rows, int64_t cols) {
  if (cols == 1) return {x.data, x.rs, 1};
  if (rows == 1) return {x.data, x.cs == 1 ? cols : 1, x.cs};
  return x;
}

// c += a b for one block, c row-major.
template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const Matrix<const T>& a, const Matrix<const T>& b,
              T* c, int64_t ldc) {
  if constexpr (std::is_same_v<T, float>)
    if (simd::gemm(m, n, k, a, b, {c, ldc, 1}, {true, nullptr, 1})) return;
  Map<T, eigen::RowMajor> target(c, m, n, eigen::OuterStride<>(ldc));
  with_map<T>(a, m, k, [&](const auto& left) {
    with_map<T>(b, k, n, [&](const auto& right) { target.noalias() += left * right; });
  });
}

// Dense row-major copy of a block, in the compute type.
template <class T, class C>
Matrix<const C> load_panel(const Matrix<const T>& x, int64_t rows, int64_t cols, C* to) {
  for (int64_t i = 0; i < rows; ++i) {
    const T* from = x.data + i * x.rs;
    C* row = to + i * cols;
    if (x.cs == 1)
      for (int64_t j = 0; j < cols; ++j) row[j] = convert<C>(from[j]);
    else
      for (int64_t j = 0; j < cols; ++j) row[j] = convert<C>(from[j * x.cs]);
  }
  return {to, cols, 1};
}

// Where a block of c starts from.
template <class T, class Out, class C>
void load_block(const Matrix<Out>& c, int64_t m, int64_t n, const GemmOptions<T>& options, C* to,
                int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      C value{};
      if (options.bias != nullptr) value = convert<C>(options.bias[j * options.bias_stride]);
      if (options.accumulate) value += convert<C>(c.data[i * c.rs + j * c.cs]);
      to[i * ldc + j] = value;
    }
}

template <class T, class Out>
void float_block(int64_t m, int64_t n, int64_t k, const Matrix<const T>& a,
                 const Matrix<const T>& b, const Matrix<Out>& c, const GemmOptions<T>& options) {
  using C = Compute<T>;
  if constexpr (std::is_same_v<T, C> && std::is_same_v<Out, C>) {
    if (c.cs == 1 && c.rs >= n && is_direct(a, m, k) && is_direct(b, k, n)) {
      if (!options.accumulate || options.bias != nullptr)
        load_block(c, m, n, options, c.data, c.rs);
      multiply<C>(m, n, k, a, b, c.data, c.rs);
      return;
    }
  }
  const int64_t depth = std::min(k, kDepth);
  const Scratch<C> panel_a(m * depth);
  const Scratch<C> panel_b(depth * n);
  const Scratch<C> block(m * n);
  load_block(c, m, n, options, block.data(), n);
  for (int64_t at = 0; at < k; at += depth) {
    const int64_t piece = std::min(depth, k - at);
    const Matrix<const C> left = load_panel(a.at(0, at), m, piece, panel_a.data());
    const Matrix<const C> right = load_panel(b.at(at, 0), piece, n, panel_b.data());
    multiply<C>(m, n, piece, left, right, block.data(), n);
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c.data[i * c.rs + j * c.cs] = convert<Out>(block[i * n + j]);
}

// Integers: wraps modulo 2^bits, in unsigned arithmetic.
template <class T>
void integer_block(int64_t m, int64_t n, int64_t k, const Matrix<const T>& a,
                   const Matrix<const T>& b, const Matrix<T>& c, const GemmOptions<T>& options) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  const Scratch<U> row(n);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      row[j] = options.bias != nullptr ? static_cast<U>(options.bias[j * options.bias_stride]) : 0;
      if (options.accumulate) row[j] += static_cast<U>(c.data[i * c.rs + j * c.cs]);
    }
    for (int64_t p = 0; p < k; ++p) {
      const U factor = static_cast<U>(a.data[i * a.rs + p * a.cs]);
      const T* from = b.data + p * b.rs;
      if (b.cs == 1)
        for (int64_t j = 0; j < n; ++j) row[j] += factor * static_cast<U>(from[j]);
      else
        for (int64_t j = 0; j < n; ++j) row[j] += factor * static_cast<U>(from[j * b.cs]);
    }
    for (int64_t j = 0; j < n; ++j) c.data[i * c.rs + j * c.cs] = static_cast<T>(row[j]);
  }
}

}  // namespace

template <class T, class Out>
void gemm(int64_t m, int64_t n, int64_t k, const Matrix<const T>& left,
          const Matrix<const T>& right, const Matrix<Out>& result, const GemmOptions<T>& options) {
  if (m == 0 || n == 0) return;
  const Matrix<const T> a = normalised(left, m, k);
  const Matrix<const T> b = normalised(right, k, n);
  const Matrix<Out> c = normalised(result, m, n);
  if (c.cs != 1 && c.rs == 1 && options.bias == nullptr) {  // blocks are written row-major
    gemm<T, Out>(n, m, k, b.transposed(), a.transposed(), c.transposed(), options);
    return;
  }
  if constexpr (std::is_same_v<T, float>)
    if (simd::gemm(m, n, k, a, b, c, options)) return;
  const int64_t tile_rows = (m + kTile - 1) / kTile;
  const int64_t tile_cols = (n + kTile - 1) / kTile;
  const int64_t work = std::min(m, kTile) * std::min(n, kTile) * std::max<int64_t>(k, 1);
  const int64_t grain = std::max<int64_t>(1, 65536 / work);
  parallel_for(tile_rows * tile_cols, grain, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t i = tile / tile_cols * kTile;
      const int64_t j = tile % tile_cols * kTile;
      const int64_t rows = std::min(kTile, m - i);
      const int64_t cols = std::min(kTile, n - j);
      GemmOptions<T> local = options;
      if (local.bias != nullptr) local.bias += j * local.bias_stride;
      if constexpr (FloatElement<T>)
        float_block<T, Out>(rows, cols, k, a.at(i, 0), b.at(0, j), c.at(i, j), local);
      else
        integer_block<T>(rows, cols, k, a.at(i, 0), b.at(0, j), c.at(i, j), local);
    }
  });
}

#define GABLE_GEMM(T, Out)                                                      \
  template void gemm<T, Out>(int64_t, int64_t, int64_t, const Matrix<const T>&, \
                             const Matrix<const T>&, const Matrix<Out>&, const GemmOptions<T>&);
GABLE_GEMM(float, float)
GABLE_GEMM(double, double)
GABLE_GEMM(half, half)
GABLE_GEMM(half, float)
GABLE_GEMM(bfloat16, bfloat16)
GABLE_GEMM(bfloat16, float)
GABLE_GEMM(int32_t, int32_t)
GABLE_GEMM(int64_t, int64_t)
GABLE_GEMM(uint8_t, uint8_t)

}  // namespace gable::cpu
