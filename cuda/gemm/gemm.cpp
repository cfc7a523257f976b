// SPDX-License-Identifier: Apache-2.0
// From row-major products with strides to plans of cuBLASLt.
//
// The library is column-major, and a matrix by rows is its transpose by columns: out = a b is run
// as outᵀ = bᵀ aᵀ, with b on the left. The rows of outᵀ are the columns of out, where the library's
// bias epilogue wants them.
#include "gemm/gemm.hpp"

#include <algorithm>
#include <type_traits>

#include "gable/memory/cuda.hpp"
#include "gemm/plan.hpp"
#include "runtime/context.hpp"
#include "runtime/strided_copy.hpp"

namespace gable::cuda {

namespace {

constexpr int64_t kBatchLimit = 65535;  // a grid dimension of the library's kernels

template <class T>
constexpr cudaDataType_t data_type() {
  if constexpr (std::is_same_v<T, double>) return CUDA_R_64F;
  if constexpr (std::is_same_v<T, half>) return CUDA_R_16F;
  if constexpr (std::is_same_v<T, bfloat16>) return CUDA_R_16BF;
  return CUDA_R_32F;
}

// Greatest power of two up to 256 that divides the address of each matrix of a batch.
template <class T>
uint32_t alignment(const T* data, int64_t step) {
  const auto bits =
      reinterpret_cast<uintptr_t>(data) | static_cast<uintptr_t>(step) * sizeof(T) | uintptr_t{256};
  return static_cast<uint32_t>(bits & (~bits + 1));
}

// Strides of any element count do for a single line; a round one permits wide loads.
int64_t single_line(int64_t length) { return (length + 15) / 16 * 16; }

template <class T, class Out>
Layout out_layout(const Gemm<T, Out>& g) {
  return {{g.batch, g.m, g.n}, {g.out.step, g.out.rs, g.out.cs}, 0, current_op()};
}

// out = bias, in rows.
template <class T, class Out>
void spread_bias(const Gemm<T, Out>& g, const Stream& stream) {
  const Layout from({g.batch, g.m, g.n}, {g.bias.step, 0, g.bias.stride}, 0, current_op());
  strided_copy(any_view(TensorView<Out>{g.out.data, out_layout(g)}),
               any_view(TensorView<const T>{g.bias.data, from}), stream);
}

template <class T, class Out>
MatmulKey key_of(const Gemm<T, Out>& g, const Leading& a, const Leading& b, const Leading& out,
                 const Stream& stream) {
  MatmulKey key;
  key.in = data_type<T>();
  key.out = data_type<Out>();
  if constexpr (std::is_same_v<T, double>) key.compute = CUBLAS_COMPUTE_64F;
  if constexpr (std::is_same_v<T, float>)
    if (allow_tf32()) key.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  key.device = stream.device.index;
  key.left_transposed = b.by_columns;
  key.right_transposed = a.by_columns;
  key.rows = g.n;
  key.cols = g.m;
  key.inner = g.k;
  key.batch = g.batch;
  key.left_ld = b.ld;
  key.right_ld = a.ld;
  key.out_ld = out.ld;
  key.left_step = g.batch > 1 ? g.b.step : 0;
  key.right_step = g.batch > 1 ? g.a.step : 0;
  key.out_step = g.batch > 1 ? g.out.step : 0;
  key.left_alignment = alignment(g.b.data, key.left_step);
  key.right_alignment = alignment(g.a.data, key.right_step);
  key.out_alignment = alignment(g.out.data, key.out_step);
  return key;
}

// A batch that the library takes in one call; out lies by rows, and may hold the bias already.
template <class T, class Out>
void run_by_rows(const Gemm<T, Out>& g, bool bias_is_in, const Stream& stream) {
  const auto a = leading(g.m, g.k, g.a.rs, g.a.cs);
  const auto b = leading(g.k, g.n, g.b.rs, g.b.cs);
  const auto out = leading(g.m, g.n, g.out.rs, g.out.cs);
  check<Error>(a && b && out && !out->by_columns && g.batch <= kBatchLimit, current_op(),
               "expected matrices with adjacent rows or columns, got strides (", g.a.rs, ", ",
               g.a.cs, "), (", g.b.rs, ", ", g.b.cs, "), (", g.out.rs, ", ", g.out.cs, ")");
  MatmulKey key = key_of(g, *a, *b, *out, stream);
  bool accumulate = g.accumulate;
  if (g.bias.data != nullptr) {
    // The epilogue of float64 and of mixed types does not exist.
    if (!bias_is_in && std::is_same_v<T, Out> && !std::is_same_v<T, double> &&
        (g.bias.stride == 1 || g.n == 1) && g.bias.step >= 0) {
      MatmulKey biased = key;
      biased.bias = true;
      biased.bias_step = g.batch > 1 ? g.bias.step : 0;
      biased.bias_alignment = alignment(g.bias.data, biased.bias_step);
      const MatmulPlan& plan = matmul_plan(biased, g.bias.data);
      if (plan.usable()) {
        plan.run(g.b.data, g.a.data, g.bias.data, g.out.data, false, stream);
        return;
      }
    }
    // The bias first, then the product on top of it: rounded once all the same.
    if (!bias_is_in) spread_bias(g, stream);
    accumulate = true;
  }
  const MatmulPlan& plan = matmul_plan(key, nullptr);
  check<CudaError>(plan.usable(), current_op(),
                   "expected an algorithm of cuBLASLt for a product of (", g.m, ", ", g.k,
                   ") and (", g.k, ", ", g.n, ") in a batch of ", g.batch, ", got none");
  plan.run(g.b.data, g.a.data, nullptr, g.out.data, accumulate, stream);
}

template <class T, class Out>
void run_floats(const Gemm<T, Out>& g, const Stream& stream) {
  const auto out = leading(g.m, g.n, g.out.rs, g.out.cs);
  if (!out || !out->by_columns) {
    run_by_rows(g, false, stream);
    return;
  }
  if (g.bias.data != nullptr) spread_bias(g, stream);
  Gemm<T, Out> flipped = g;
  std::swap(flipped.m, flipped.n);
  flipped.a = g.b.transposed();
  flipped.b = g.a.transposed();
  flipped.out = g.out.transposed();
  run_by_rows(flipped, true, stream);
}

}  // namespace

std::optional<Leading> leading(int64_t rows, int64_t cols, int64_t rs, int64_t cs) {
  if (rows == 1 && (cs == 1 || cols == 1)) return Leading{false, single_line(cols)};
  if (cols == 1 && rs == 1) return Leading{true, single_line(rows)};
  if ((cs == 1 || cols == 1) && rs >= cols) return Leading{false, rs};
  if ((rs == 1 || rows == 1) && cs >= rows) return Leading{true, cs};
  return std::nullopt;
}

template <class T, class Out>
void gemm(const Gemm<T, Out>& product, const Stream& stream) {
  if (product.m == 0 || product.n == 0 || product.batch == 0) return;
  if constexpr (std::is_integral_v<T>) {
    integer_gemm(product, stream);
  } else {
    if (product.k == 0) {
      if (product.bias.data != nullptr)
        spread_bias(product, stream);
      else if (!product.accumulate)
        fill_zero(TensorView<Out>{product.out.data, out_layout(product)}, stream);
      return;
    }
    for (int64_t first = 0; first < product.batch; first += kBatchLimit) {
      Gemm<T, Out> part = product;
      part.batch = std::min(kBatchLimit, product.batch - first);
      part.a.data += first * product.a.step;
      part.b.data += first * product.b.step;
      part.out.data += first * product.out.step;
      if (part.bias.data != nullptr) part.bias.data += first * product.bias.step;
      run_floats(part, stream);
    }
  }
}

#define GABLE_GEMM(T, Out) template void gemm<T, Out>(const Gemm<T, Out>&, const Stream&);
GABLE_GEMM(float, float)
GABLE_GEMM(double, double)
GABLE_GEMM(half, half)
GABLE_GEMM(bfloat16, bfloat16)
GABLE_GEMM(half, float)
GABLE_GEMM(bfloat16, float)
GABLE_GEMM(int32_t, int32_t)
GABLE_GEMM(int64_t, int64_t)
GABLE_GEMM(uint8_t, uint8_t)

}  // namespace gable::cuda
