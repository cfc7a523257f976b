// SPDX-License-Identifier: Apache-2.0
// The untyped part of reductions: which axes are kept and which are reduced, and the loop nest.
#pragma once

#include <array>
#include <cstdint>

#include "gable/core/layout.hpp"

namespace gable::cpu {

/// Axes of size 1 vanish; both lists are by decreasing |x stride|, merged where the strides allow
/// it, and have at least one axis. Strides of `out` and `shift` are 0 along reduced axes.
struct ReducePlan {
  struct Axis {
    int64_t size;
    int64_t x;
    int64_t out;
    int64_t shift;
  };
  std::array<Axis, kMaxRank> kept{};
  std::array<Axis, kMaxRank> reduced{};
  int kept_rank = 0;
  int reduced_rank = 0;
  int64_t outputs = 1;
  int64_t count = 1;    ///< values a output
  bool by_rows = true;  ///< one output at a time, along a reduced axis near in memory

  /// `out` and `shift` have x's rank, and size 1 along reduced dimensions.
  ReducePlan(const Layout& x, const Layout& out, const Layout& shift);

  [[nodiscard]] const Axis& inner_kept() const { return kept[static_cast<size_t>(kept_rank - 1)]; }
  [[nodiscard]] const Axis& inner() const { return reduced[static_cast<size_t>(reduced_rank - 1)]; }
};

/// Walks over the indices of the first `rank` of some axes, last fastest.
class AxisCursor {
 public:
  AxisCursor(const ReducePlan::Axis* axes, int rank, int64_t index) : axes_(axes), rank_(rank) {
    for (int d = rank - 1; d >= 0; --d) {
      const int64_t i = index % axes[d].size;
      index /= axes[d].size;
      index_[static_cast<size_t>(d)] = i;
      x += i * axes[d].x;
      out += i * axes[d].out;
      shift += i * axes[d].shift;
    }
  }
  void next() {
    for (int d = rank_ - 1; d >= 0; --d) {
      const ReducePlan::Axis& a = axes_[d];
      int64_t& i = index_[static_cast<size_t>(d)];
      x += a.x;
      out += a.out;
      shift += a.shift;
      if (++i < a.size) return;
      x -= i * a.x;
      out -= i * a.out;
      shift -= i * a.shift;
      i = 0;
    }
  }
  int64_t x = 0;
  int64_t out = 0;
  int64_t shift = 0;

 private:
  const ReducePlan::Axis* axes_;
  int rank_;
  std::array<int64_t, kMaxRank> index_{};
};

/// The typed part of a reduction: arrays of states. `offset` counts elements of x.
class ReduceStates {
 public:
  virtual void init(void* states, int64_t n) const = 0;
  /// states[j] takes x[offset + i * step + j * column_step] for all i < rows.
  virtual void add_rows(void* states, const double* shifts, int64_t offset, int64_t rows,
                        int64_t step, int64_t n, int64_t column_step) const = 0;
  /// into[j] = combine(into[j], from[j]).
  virtual void combine(void* into, const void* from, int64_t n) const = 0;
  /// The results of n outputs from `at`, of `count` values each.
  virtual void write(const void* states, int64_t n, const AxisCursor& at, int64_t out_step,
                     int64_t shift_step, int64_t count) const = 0;

  const int64_t bytes;        ///< of a state
  const double* const shift;  ///< null: none

 protected:
  ReduceStates(size_t state_bytes, const double* shifts)
      : bytes(static_cast<int64_t>(state_bytes)), shift(shifts) {}
  ~ReduceStates() = default;
};

inline constexpr int64_t kMaxStateBytes = 8;

/// Runs a reduction. The split into parts depends on the plan only, so results do not depend on
/// the number of threads.
void drive_reduction(const ReducePlan& plan, const ReduceStates& body);

}  // namespace gable::cpu
