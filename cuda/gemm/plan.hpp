// SPDX-License-Identifier: Apache-2.0
// MatmulPlan: one product of cuBLASLt, described and chosen once, run often.
#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>

#include "gable/core/device.hpp"

namespace gable::cuda {

/// All that decides how a product runs, in cuBLAS's column-major sense:
/// out (rows, cols) = op(left) (rows, inner) op(right) (inner, cols) + bias (rows).
/// Alignments are those of every matrix of the batch, in bytes.
struct MatmulKey {
  cudaDataType_t in = CUDA_R_32F;
  cudaDataType_t out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  int device = 0;
  bool left_transposed = false;
  bool right_transposed = false;
  bool bias = false;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t inner = 0;
  int64_t batch = 1;
  int64_t left_ld = 0;
  int64_t right_ld = 0;
  int64_t out_ld = 0;
  int64_t left_step = 0;  ///< elements from one matrix of the batch to the next
  int64_t right_step = 0;
  int64_t out_step = 0;
  int64_t bias_step = 0;
  uint32_t left_alignment = 1;
  uint32_t right_alignment = 1;
  uint32_t out_alignment = 1;
  uint32_t bias_alignment = 1;
  friend auto operator<=>(const MatmulKey&, const MatmulKey&) = default;
};

class MatmulPlan {
 public:
  /// Asks the library for an algorithm; `bias` is any address of the key's alignment.
  MatmulPlan(const MatmulKey& key, const void* bias);

  /// False where the library has no algorithm.
  [[nodiscard]] bool usable() const { return usable_; }
  [[nodiscard]] int64_t workspace_bytes() const { return workspace_bytes_; }
  /// out = left right + bias, or out += left right.
  void run(const void* left, const void* right, const void* bias, void* out, bool accumulate,
           const Stream& stream) const;

 private:
  template <class Opaque, auto Destroy>
  struct Release {
    void operator()(Opaque* p) const { static_cast<void>(Destroy(p)); }
  };
  using Description =
      std::unique_ptr<cublasLtMatmulDescOpaque_t,
                      Release<cublasLtMatmulDescOpaque_t, cublasLtMatmulDescDestroy>>;
  using MatrixLayout =
      std::unique_ptr<cublasLtMatrixLayoutOpaque_t,
                      Release<cublasLtMatrixLayoutOpaque_t, cublasLtMatrixLayoutDestroy>>;
  using Preference =
      std::unique_ptr<cublasLtMatmulPreferenceOpaque_t,
                      Release<cublasLtMatmulPreferenceOpaque_t, cublasLtMatmulPreferenceDestroy>>;

  static MatrixLayout matrix(cudaDataType_t type, int64_t rows, int64_t cols, int64_t ld,
                             int64_t batch, int64_t step);
  static Preference preference(const MatmulKey& key);
  void choose(const MatmulKey& key);

  Device device_;
  Description description_;
  MatrixLayout left_;
  MatrixLayout right_;
  MatrixLayout out_;
  cublasLtMatmulAlgo_t algorithm_ = {};
  bool usable_ = false;
  bool bias_ = false;
  bool doubles_ = false;  // type of alpha and beta
  int64_t workspace_bytes_ = 0;
  mutable std::mutex mutex_;  // the bias address is a part of the description
};

/// The plan of a key, made on first use and kept.
[[nodiscard]] const MatmulPlan& matmul_plan(const MatmulKey& key, const void* bias);

}  // namespace gable::cuda
