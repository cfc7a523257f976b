// SPDX-License-Identifier: Apache-2.0
// Packed float kernels on Google Highway: the instruction set is picked at run time. Without
// Highway, and for what they do not take, every function returns false and Eigen does the work.
// Against Eigen on the same cores (bench/results/cpu-matmul.json): matmul 1.8-3.7x with AVX-512 and
// 1.2-1.8x with AVX2 (1.0x for 10 columns, vectors stay with Eigen), 3x3 convolutions of 64
// channels or more 1.4-2.4x and 1.1-2.3x.
#pragma once

#include "gable/ops/conv_geometry.hpp"
#include "gemm.hpp"

namespace gable::cpu::simd {

#ifdef GABLE_HAS_HIGHWAY

struct GemmProblem {
  int64_t m;
  int64_t n;
  int64_t k;
  Matrix<const float> a;
  Matrix<const float> b;
  Matrix<float> c;
  GemmOptions<float> options;
};

/// gemm of floats, row-major c.
bool gemm(int64_t m, int64_t n, int64_t k, const Matrix<const float>& a,
          const Matrix<const float>& b, const Matrix<float>& c, const GemmOptions<float>& options);
bool conv(const Conv2dArgs<float>& args);
bool conv(const Conv2dInputGradArgs<float>& args);
bool conv(const Conv2dWeightGradArgs<float>& args);

/// Off makes all of them return false, for tests and measurements of the Eigen path. Returns the
/// previous setting; GABLE_SIMD=off in the environment starts with it off.
bool set_enabled(bool on);
[[nodiscard]] bool enabled();

#else

inline bool gemm(int64_t, int64_t, int64_t, const Matrix<const float>&, const Matrix<const float>&,
                 const Matrix<float>&, const GemmOptions<float>&) {
  return false;
}
inline bool conv(const Conv2dArgs<float>&) { return false; }
inline bool conv(const Conv2dInputGradArgs<float>&) { return false; }
inline bool conv(const Conv2dWeightGradArgs<float>&) { return false; }
inline bool set_enabled(bool) { return false; }
[[nodiscard]] inline bool enabled() { return false; }

#endif

}  // namespace gable::cpu::simd
