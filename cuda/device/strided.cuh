// SPDX-License-Identifier: Apache-2.0
// StridedIndex: from a position in the visit of a StridedLoop to the offsets of its operands.
#pragma once

#include <bit>
#include <cstdint>

#include "gable/tensor/strided_loop.hpp"

namespace gable::cuda {

/// Division of 31-bit numbers by a constant through a multiplication (Granlund and Montgomery,
/// "Division by invariant integers using multiplication", 1994).
struct Divider {
  uint32_t divisor = 1;
  uint32_t multiplier = 1;
  uint32_t shift = 0;
  Divider() = default;
  explicit Divider(uint32_t d)
      : divisor(d), shift(d <= 1 ? 0 : 32U - static_cast<uint32_t>(std::countl_zero(d - 1))) {
    const uint64_t power = uint64_t{1} << shift;
    multiplier = static_cast<uint32_t>(((power - d) << 32) / d + 1);
  }
  __device__ __forceinline__ uint32_t divide(uint32_t n) const {
    return (__umulhi(n, multiplier) + n) >> shift;
  }
};

/// Offsets, in elements.
template <int N>
struct Offsets {
  int64_t at[N];
};

/// Sizes and strides of N operands in visiting order, outermost first; passed to kernels by value.
/// The last dimension may be counted in packs of `unit` elements.
template <int N>
class StridedIndex {
 public:
  explicit StridedIndex(const StridedLoop<N>& loop, int64_t unit = 1) : rank_(loop.rank()) {
    for (int d = 0; d < rank_; ++d) {
      const bool last = d == rank_ - 1;
      sizes_[d] = last ? loop.size(d) / unit : loop.size(d);
      for (int k = 0; k < N; ++k)
        strides_[d][k] = loop.strides(d)[static_cast<size_t>(k)] * (last ? unit : 1);
      count_ *= sizes_[d];
    }
    small_ = count_ < (int64_t{1} << 31);
    // The outermost is not divided by; it may be 0, a row of less than a unit.
    for (int d = 1; small_ && d < rank_; ++d)
      dividers_[d] = Divider(static_cast<uint32_t>(sizes_[d]));
  }
  /// Number of positions.
  [[nodiscard]] __host__ __device__ int64_t count() const { return count_; }

  __device__ __forceinline__ Offsets<N> offsets(int64_t position) const {
    Offsets<N> o = {};
    if (rank_ == 1) {
      add(o, 0, position);
    } else if (small_) {
      auto rest = static_cast<uint32_t>(position);
#pragma unroll 1
      for (int d = rank_ - 1; d >= 0; --d) {
        const uint32_t next = d == 0 ? 0 : dividers_[d].divide(rest);
        add(o, d, rest - next * dividers_[d].divisor);
        rest = next;
      }
    } else {
#pragma unroll 1
      for (int d = rank_ - 1; d >= 0; --d) {
        const int64_t next = d == 0 ? 0 : position / sizes_[d];
        add(o, d, position - next * sizes_[d]);
        position = next;
      }
    }
    return o;
  }

 private:
  __device__ __forceinline__ void add(Offsets<N>& o, int d, int64_t coordinate) const {
#pragma unroll
    for (int k = 0; k < N; ++k) o.at[k] += coordinate * strides_[d][k];
  }

  int rank_;
  bool small_ = true;
  int64_t count_ = 1;
  int64_t sizes_[kMaxRank] = {};
  int64_t strides_[kMaxRank][N] = {};
  Divider dividers_[kMaxRank];
};

}  // namespace gable::cuda
