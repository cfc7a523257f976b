// SPDX-License-Identifier: Apache-2.0
// StridedLoop: visits N operands of one shape row by row, in the memory order of the first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "gable/core/layout.hpp"
#include "gable/core/parallel.hpp"

namespace gable {

/// Joint iteration over N equally shaped layouts. Dimensions are reordered by the first operand's
/// strides (outermost first) and merged where all operands allow it, so that dense operands of
/// equal order become one row. Offsets and strides are in elements.
template <int N>
class StridedLoop {
 public:
  using Offsets = std::array<int64_t, N>;

  /// All layouts must have the shape of the first.
  explicit StridedLoop(const std::array<const Layout*, N>& operands) {
    const Layout& lead = *operands[0];
    std::array<int, kMaxRank> order{};
    int rank = 0;
    for (int d = 0; d < lead.rank(); ++d)
      if (lead.shape()[d] != 1) order[static_cast<size_t>(rank++)] = d;
    std::stable_sort(order.begin(), order.begin() + rank, [&](int a, int b) {
      return std::abs(lead.strides()[a]) > std::abs(lead.strides()[b]);
    });
    numel_ = lead.numel();
    if (numel_ == 0) rank = 0;  // never visited; strides may be anything
    for (int i = 0; i < rank; ++i) {
      const int d = order[static_cast<size_t>(i)];
      Offsets strides{};
      for (size_t k = 0; k < N; ++k) strides[k] = operands[k]->strides()[d];
      push(lead.shape()[d], strides);
    }
    if (rank_ == 0) {  // scalars and single elements
      rank_ = 1;
      sizes_[0] = 1;
      strides_[0] = {};
      for (size_t k = 0; k < N; ++k) strides_[0][k] = 1;
    }
  }

  [[nodiscard]] int64_t numel() const { return numel_; }
  [[nodiscard]] int64_t row_length() const { return sizes_[last()]; }
  /// Strides along a row.
  [[nodiscard]] const Offsets& row_strides() const { return strides_[last()]; }

  /// The merged dimensions, outermost first; the last is the row.
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int64_t size(int d) const { return sizes_[static_cast<size_t>(d)]; }
  [[nodiscard]] const Offsets& strides(int d) const { return strides_[static_cast<size_t>(d)]; }

  /// Calls row(offsets, length) for pieces of rows that cover elements [begin, end) of the visit.
  template <class Row>
  void visit(int64_t begin, int64_t end, Row&& row) const {
    if (begin >= end) return;  // a row may be empty
    const int64_t length = row_length();
    int64_t column = begin % length;
    std::array<int64_t, kMaxRank> coordinates{};
    Offsets row_start = offsets_of_row(begin / length, coordinates);
    while (begin < end) {
      Offsets at = row_start;
      for (size_t k = 0; k < N; ++k) at[k] += column * row_strides()[k];
      const int64_t piece = std::min(length - column, end - begin);
      row(at, piece);
      begin += piece;
      column = 0;
      advance_row(row_start, coordinates);
    }
  }

  /// visit() over everything, split over threads; `row` must be safe to call concurrently.
  template <class Row>
  void parallel(int64_t grain, Row&& row) const {
    parallel_for(numel_, grain, [&](int64_t begin, int64_t end) { visit(begin, end, row); });
  }

 private:
  [[nodiscard]] size_t last() const { return static_cast<size_t>(rank_ - 1); }

  void push(int64_t size, const Offsets& strides) {
    if (rank_ > 0) {
      bool merges = true;
      for (size_t k = 0; k < N; ++k) merges &= strides_[last()][k] == strides[k] * size;
      if (merges) {
        sizes_[last()] *= size;
        strides_[last()] = strides;
        return;
      }
    }
    ++rank_;
    sizes_[last()] = size;
    strides_[last()] = strides;
  }

  Offsets offsets_of_row(int64_t index, std::array<int64_t, kMaxRank>& coordinates) const {
    Offsets at{};
    for (int d = rank_ - 2; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      coordinates[i] = index % sizes_[i];
      index /= sizes_[i];
      for (size_t k = 0; k < N; ++k) at[k] += coordinates[i] * strides_[i][k];
    }
    return at;
  }

  // Without divisions, since rows may be short.
  void advance_row(Offsets& at, std::array<int64_t, kMaxRank>& coordinates) const {
    for (int d = rank_ - 2; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      for (size_t k = 0; k < N; ++k) at[k] += strides_[i][k];
      if (++coordinates[i] < sizes_[i]) return;
      for (size_t k = 0; k < N; ++k) at[k] -= sizes_[i] * strides_[i][k];
      coordinates[i] = 0;
    }
  }

  std::array<int64_t, kMaxRank> sizes_{};
  std::array<Offsets, kMaxRank> strides_{};
  int rank_ = 0;
  int64_t numel_ = 0;
};

/// Elements that a thread should get at least of cheap elementwise work.
inline constexpr int64_t kElementwiseGrain = 32768;

}  // namespace gable
