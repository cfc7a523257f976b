// SPDX-License-Identifier: Apache-2.0
// Descriptions, choice and cache of cuBLASLt products.
#include "gemm/plan.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "gemm/blas.hpp"
#include "runtime/context.hpp"
#include "runtime/scratch.hpp"

namespace gable::cuda {

namespace {

constexpr uint64_t kWorkspaceLimit = uint64_t{32} << 20;  // what Hopper's kernels may ask for

// How many algorithms to ask for. The first is taken; a measured choice among more belongs into
// MatmulPlan::choose.
constexpr int kCandidates = 1;

template <class V>
void set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attribute, const V& value) {
  GABLE_BLAS_CHECK(cublasLtMatmulDescSetAttribute(d, attribute, &value, sizeof(value)));
}
template <class V>
void set(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attribute, const V& value) {
  GABLE_BLAS_CHECK(cublasLtMatrixLayoutSetAttribute(l, attribute, &value, sizeof(value)));
}
template <class V>
void set(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attribute,
         const V& value) {
  GABLE_BLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(p, attribute, &value, sizeof(value)));
}

}  // namespace

MatmulPlan::MatrixLayout MatmulPlan::matrix(cudaDataType_t type, int64_t rows, int64_t cols,
                                            int64_t ld, int64_t batch, int64_t step) {
  cublasLtMatrixLayout_t raw = nullptr;
  GABLE_BLAS_CHECK(cublasLtMatrixLayoutCreate(&raw, type, static_cast<uint64_t>(rows),
                                              static_cast<uint64_t>(cols), ld));
  MatrixLayout layout(raw);
  if (batch > 1) {
    set(raw, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<int32_t>(batch));
    set(raw, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, step);
  }
  return layout;
}

MatmulPlan::Preference MatmulPlan::preference(const MatmulKey& key) {
  cublasLtMatmulPreference_t raw = nullptr;
  GABLE_BLAS_CHECK(cublasLtMatmulPreferenceCreate(&raw));
  Preference p(raw);
  set(raw, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceLimit);
  // Partial sums stay in the compute type.
  set(raw, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  // The bias has no alignment attribute of its own: it is read as widely as the output.
  const uint32_t result =
      key.bias ? std::min(key.out_alignment, key.bias_alignment) : key.out_alignment;
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, key.left_alignment);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.right_alignment);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result);
  set(raw, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result);
  return p;
}

MatmulPlan::MatmulPlan(const MatmulKey& key, const void* bias)
    : device_{DeviceType::cuda, key.device},
      bias_(key.bias),
      doubles_(key.compute == CUBLAS_COMPUTE_64F) {
  cublasLtMatmulDesc_t raw = nullptr;
  GABLE_BLAS_CHECK(cublasLtMatmulDescCreate(&raw, key.compute, doubles_ ? CUDA_R_64F : CUDA_R_32F));
  description_.reset(raw);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSA, key.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(raw, CUBLASLT_MATMUL_DESC_TRANSB, key.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (key.bias) {
    set(raw, CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    set(raw, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (key.batch > 1) set(raw, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, key.bias_step);
  }
  const bool lt = key.left_transposed;
  const bool rt = key.right_transposed;
  left_ = matrix(key.in, lt ? key.inner : key.rows, lt ? key.rows : key.inner, key.left_ld,
                 key.batch, key.left_step);
  right_ = matrix(key.in, rt ? key.cols : key.inner, rt ? key.inner : key.cols, key.right_ld,
                  key.batch, key.right_step);
  out_ = matrix(key.out, key.rows, key.cols, key.out_ld, key.batch, key.out_step);
  choose(key);
}

void MatmulPlan::choose(const MatmulKey& key) {
  const Preference p = preference(key);
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results = {};
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      blas_handle(device_), description_.get(), left_.get(), right_.get(), out_.get(), out_.get(),
      p.get(), kCandidates, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return;
  GABLE_BLAS_CHECK(status);
  for (int i = 0; i < found && !usable_; ++i) {
    const auto& result = results[static_cast<size_t>(i)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithm_ = result.algo;
    workspace_bytes_ = static_cast<int64_t>(result.workspaceSize);
    usable_ = true;
  }
}

void MatmulPlan::run(const void* left, const void* right, const void* bias, void* out,
                     bool accumulate, const Stream& stream) const {
  const Scratch<char> workspace(workspace_bytes_, stream);
  const double double_alpha = 1;
  const double double_beta = accumulate ? 1 : 0;
  const float alpha = 1;
  const float beta = accumulate ? 1 : 0;
  const auto* a = doubles_ ? static_cast<const void*>(&double_alpha) : &alpha;
  const auto* b = doubles_ ? static_cast<const void*>(&double_beta) : &beta;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (bias_) {
    lock.lock();
    set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  GABLE_BLAS_CHECK(cublasLtMatmul(blas_handle(device_), description_.get(), a, left, left_.get(),
                                  right, right_.get(), b, out, out_.get(), out, out_.get(),
                                  &algorithm_, workspace.data(),
                                  static_cast<size_t>(workspace_bytes_), native(stream)));
}

const MatmulPlan& matmul_plan(const MatmulKey& key, const void* bias) {
  static auto* plans = new std::map<MatmulKey, std::unique_ptr<MatmulPlan>>;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::unique_ptr<MatmulPlan>& plan = (*plans)[key];
  if (plan == nullptr) plan = std::make_unique<MatmulPlan>(key, bias);
  return *plan;
}

}  // namespace gable::cuda
