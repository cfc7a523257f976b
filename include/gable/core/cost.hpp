// SPDX-License-Identifier: Apache-2.0
// Cost of one kernel: operations by unit and compulsory bytes, the roofline's input.
#pragma once

#include <cstdint>

namespace gable {

/// Work of one operator call. 1 multiply-add = 2 FLOPs; bytes count each input once and each
/// output once, whatever the caches do. 64-bit throughout: 1024^3 GEMM already exceeds int32.
struct Cost {
  int64_t flops = 0;          ///< vector arithmetic (FMA units)
  int64_t matrix_flops = 0;   ///< matrix products (tensor cores where there are any)
  int64_t special = 0;        ///< exp, log, tanh, sqrt, ... (special function units)
  int64_t bytes_read = 0;     ///< compulsory bytes read
  int64_t bytes_written = 0;  ///< compulsory bytes written

  friend constexpr Cost operator+(const Cost& a, const Cost& b) {
    return {a.flops + b.flops, a.matrix_flops + b.matrix_flops, a.special + b.special,
            a.bytes_read + b.bytes_read, a.bytes_written + b.bytes_written};
  }
  friend constexpr bool operator==(const Cost&, const Cost&) = default;
  [[nodiscard]] constexpr int64_t bytes() const { return bytes_read + bytes_written; }
  [[nodiscard]] constexpr int64_t total_flops() const { return flops + matrix_flops + special; }
};

}  // namespace gable
