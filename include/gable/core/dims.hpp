// SPDX-License-Identifier: Apache-2.0
// Dims: up to kMaxRank 64-bit integers stored inline; used for shapes, strides and lists of axes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "gable/core/config.hpp"

namespace gable {

inline constexpr int kMaxRank = 8;

namespace detail {
[[noreturn]] void fail_rank(int64_t rank);  // throws ShapeError: rank above kMaxRank
}

/// A short list of 64-bit integers (rank <= 8). Trivially copyable; never allocates.
/// Throws ShapeError when more than kMaxRank values are given.
class Dims {
 public:
  constexpr Dims() = default;
  constexpr Dims(std::initializer_list<int64_t> values) {
    for (int64_t v : values) push_back(v);
  }
  constexpr Dims(std::span<const int64_t> values) {  // NOLINT(google-explicit-constructor)
    for (int64_t v : values) push_back(v);
  }
  /// `rank` copies of `value`.
  static constexpr Dims filled(int rank, int64_t value) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  [[nodiscard]] GABLE_HD constexpr int size() const { return size_; }
  [[nodiscard]] GABLE_HD constexpr bool empty() const { return size_ == 0; }
  GABLE_HD constexpr int64_t& operator[](int i) { return values_[i]; }
  GABLE_HD constexpr const int64_t& operator[](int i) const { return values_[i]; }
  [[nodiscard]] constexpr int64_t& back() { return values_[size_ - 1]; }
  [[nodiscard]] constexpr const int64_t& back() const { return values_[size_ - 1]; }
  constexpr int64_t* begin() { return values_; }
  constexpr int64_t* end() { return values_ + size_; }
  [[nodiscard]] constexpr const int64_t* begin() const { return values_; }
  [[nodiscard]] constexpr const int64_t* end() const { return values_ + size_; }

  constexpr void push_back(int64_t v) {
    if (size_ == kMaxRank) detail::fail_rank(size_ + 1);
    values_[size_++] = v;
  }
  constexpr void insert(int at, int64_t v) {
    push_back(v);
    for (int i = size_ - 1; i > at; --i) values_[i] = values_[i - 1];
    values_[at] = v;
  }
  constexpr void erase(int at) {
    for (int i = at; i + 1 < size_; ++i) values_[i] = values_[i + 1];
    --size_;
  }
  [[nodiscard]] constexpr bool contains(int64_t v) const {
    for (int64_t x : *this)
      if (x == v) return true;
    return false;
  }

  friend constexpr bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i)
      if (a.values_[i] != b.values_[i]) return false;
    return true;
  }

 private:
  int64_t values_[kMaxRank] = {};
  int size_ = 0;
};

using Shape = Dims;
using Strides = Dims;

/// Product of the sizes; 1 for rank 0. Layout checks overflow when a shape enters it.
[[nodiscard]] GABLE_HD constexpr int64_t numel(const Shape& shape) {
  int64_t n = 1;
  for (int i = 0; i < shape.size(); ++i) n *= shape[i];
  return n;
}

}  // namespace gable
