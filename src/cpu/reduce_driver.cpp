// SPDX-License-Identifier: Apache-2.0
// The loop nest of reductions.
#include "reduce_driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gable/core/parallel.hpp"
#include "scratch.hpp"

namespace gable::cpu {

namespace {
using Axis = ReducePlan::Axis;

// Sorts by decreasing |x stride| and merges neighbours; adds an axis of size 1 if there is none.
int arrange(std::array<Axis, kMaxRank>& axes, int rank) {
  const auto begin = axes.begin();
  std::stable_sort(begin, begin + rank,
                   [](const Axis& a, const Axis& b) { return std::abs(a.x) > std::abs(b.x); });
  int merged = 0;
  for (int d = 0; d < rank; ++d) {
    const Axis a = axes[static_cast<size_t>(d)];
    if (merged > 0) {
      Axis& outer = axes[static_cast<size_t>(merged - 1)];
      if (outer.x == a.x * a.size && outer.out == a.out * a.size &&
          outer.shift == a.shift * a.size) {
        outer = {outer.size * a.size, a.x, a.out, a.shift};
        continue;
      }
    }
    axes[static_cast<size_t>(merged++)] = a;
  }
  if (merged == 0) axes[static_cast<size_t>(merged++)] = {1, 0, 0, 0};
  return merged;
}
}  // namespace

ReducePlan::ReducePlan(const Layout& x, const Layout& out, const Layout& shift) {
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t size = x.shape()[d];
    if (size == 1) continue;
    if (out.shape()[d] != size) {
      reduced[static_cast<size_t>(reduced_rank++)] = {size, x.strides()[d], 0, 0};
      count *= size;
    } else {
      kept[static_cast<size_t>(kept_rank++)] = {size, x.strides()[d], out.strides()[d],
                                                shift.strides()[d]};
      outputs *= size;
    }
  }
  const bool any_kept = kept_rank > 0;
  const bool any_reduced = reduced_rank > 0;
  kept_rank = arrange(kept, kept_rank);
  reduced_rank = arrange(reduced, reduced_rank);
  // Short rows are better taken side by side, even with a stride.
  const bool short_rows = inner().size < 16 && inner_kept().size >= 16;
  const bool far = std::abs(inner().x) >= std::abs(inner_kept().x);
  by_rows = any_reduced && !(any_kept && (short_rows || far));
}

namespace {

constexpr int64_t kChunk = 32768;     // values that one task reduces
constexpr int64_t kColumns = 512;     // states that stay in the first-level cache
constexpr int64_t kLanes = 64;        // states of one output's long dense row
constexpr int64_t kEnoughTasks = 64;  // no output is split to make more

class Driver {
 public:
  Driver(const ReducePlan& plan, const ReduceStates& body) : plan_(plan), body_(body) {}

  void run() {
    if (plan_.outputs == 0) return;
    if (plan_.count == 0) {
      parts_ = 0;
      return combine_parts(nullptr);
    }
    if (plan_.by_rows)
      run_rows();
    else
      run_columns();
  }

 private:
  using Byte = unsigned char;
  struct alignas(64) States {
    std::array<Byte, kColumns * kMaxStateBytes> bytes;
    std::array<double, kColumns> shifts;
  };
  [[nodiscard]] Byte* nth(Byte* states, int64_t i) const { return states + i * body_.bytes; }

  // --- one output at a time

  void run_rows() {
    parts_ = (plan_.count + kChunk - 1) / kChunk;
    const Scratch<Byte> partial(parts_ > 1 ? parts_ * plan_.outputs * body_.bytes : 0);
    const int64_t grain = std::max<int64_t>(1, kChunk / plan_.count);
    parallel_for(plan_.outputs * parts_, grain, [&](int64_t begin, int64_t end) {
      States states;
      AxisCursor at(plan_.kept.data(), plan_.kept_rank, begin / parts_);
      int64_t part = begin % parts_;
      int64_t output = begin / parts_;
      for (int64_t task = begin; task < end; ++task) {
        values(at, part * kChunk, std::min(plan_.count, (part + 1) * kChunk), states);
        if (parts_ == 1)
          body_.write(states.bytes.data(), 1, at, 0, 0, plan_.count);
        else
          std::memcpy(nth(partial.data(), part * plan_.outputs + output), states.bytes.data(),
                      static_cast<size_t>(body_.bytes));
        if (++part == parts_) {
          part = 0;
          ++output;
          at.next();
        }
      }
    });
    if (parts_ > 1) combine_parts(partial.data());
  }

  // Values begin .. end of one output into states[0].
  void values(const AxisCursor& output, int64_t begin, int64_t end, States& states) const {
    const double shift = body_.shift != nullptr ? body_.shift[output.shift] : 0;
    const int64_t length = plan_.inner().size;
    const int64_t step = plan_.inner().x;
    // A long dense row is taken as rows of some columns, which vectorize, and folded at the end.
    const int64_t row = std::min(length, end - begin);
    const bool narrow = step != 1 || row < 8 * kLanes;
    const int64_t lanes = narrow ? 1 : kLanes;
    Byte* s = states.bytes.data();
    body_.init(s, lanes);
    if (body_.shift != nullptr) std::fill_n(states.shifts.data(), lanes, shift);
    AxisCursor at(plan_.reduced.data(), plan_.reduced_rank - 1, begin / length);
    int64_t column = begin % length;
    while (begin < end) {
      const int64_t n = std::min(length - column, end - begin);
      const int64_t wide = narrow ? 0 : n / lanes;
      int64_t x = output.x + at.x + column * step;
      if (wide > 0) body_.add_rows(s, states.shifts.data(), x, wide, lanes, lanes, 1);
      x += wide * lanes * step;
      if (n > wide * lanes)
        body_.add_rows(s, states.shifts.data(), x, n - wide * lanes, step, 1, 1);
      begin += n;
      column = 0;
      at.next();
    }
    for (int64_t half = lanes / 2; half > 0; half /= 2) body_.combine(s, nth(s, half), half);
  }

  // --- neighbouring outputs side by side

  void run_columns() {
    const Axis& inner = plan_.inner_kept();
    const int64_t m = inner.size;
    const int64_t block = std::min(m, kColumns);
    const int64_t blocks = (m + block - 1) / block;
    const int64_t outer = plan_.outputs / m;
    int64_t rows = std::max<int64_t>(1, kChunk / block);
    parts_ = (plan_.count + rows - 1) / rows;
    if (outer * blocks >= kEnoughTasks) parts_ = 1;
    if (parts_ == 1) rows = plan_.count;
    // Short dense rows are taken several at once.
    if (inner.x == 1 && plan_.inner().x == m)
      fold_ = std::max<int64_t>(1, std::min<int64_t>(64 / m, plan_.inner().size));

    const Scratch<Byte> partial(parts_ > 1 ? parts_ * plan_.outputs * body_.bytes : 0);
    const int64_t grain = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, rows * block));
    parallel_for(outer * blocks * parts_, grain, [&](int64_t begin, int64_t end) {
      States states;
      for (int64_t task = begin; task < end; ++task) {
        const int64_t part = task % parts_;
        const int64_t o = task / parts_ / blocks;
        const int64_t first = task / parts_ % blocks * block;
        const int64_t n = std::min(block, m - first);
        AxisCursor at(plan_.kept.data(), plan_.kept_rank - 1, o);
        at.x += first * inner.x;
        at.out += first * inner.out;
        at.shift += first * inner.shift;
        columns(at, n, part * rows, std::min(plan_.count, (part + 1) * rows), states);
        if (parts_ == 1)
          body_.write(states.bytes.data(), n, at, inner.out, inner.shift, plan_.count);
        else
          std::memcpy(nth(partial.data(), part * plan_.outputs + o * m + first),
                      states.bytes.data(), static_cast<size_t>(n * body_.bytes));
      }
    });
    if (parts_ > 1) combine_parts(partial.data());
  }

  // Rows begin .. end of n outputs into states[0 .. n).
  void columns(const AxisCursor& output, int64_t n, int64_t begin, int64_t end,
               States& states) const {
    const int64_t column_step = plan_.inner_kept().x;
    const int64_t width = n * fold_;
    Byte* s = states.bytes.data();
    body_.init(s, width);
    if (body_.shift != nullptr)
      for (int64_t j = 0; j < width; ++j)
        states.shifts[static_cast<size_t>(j)] =
            body_.shift[output.shift + j % n * plan_.inner_kept().shift];
    const int64_t length = plan_.inner().size;
    const int64_t step = plan_.inner().x;
    AxisCursor at(plan_.reduced.data(), plan_.reduced_rank - 1, begin / length);
    int64_t row = begin % length;
    while (begin < end) {
      const int64_t rows = std::min(length - row, end - begin);
      const int64_t wide = rows / fold_;
      const int64_t x = output.x + at.x + row * step;
      body_.add_rows(s, states.shifts.data(), x, wide, step * fold_, width, column_step);
      if (rows % fold_ != 0)
        body_.add_rows(s, states.shifts.data(), x + wide * fold_ * step, rows % fold_, step, n,
                       column_step);
      begin += rows;
      row = 0;
      at.next();
    }
    for (int64_t f = 1; f < fold_; ++f) body_.combine(s, nth(s, f * n), n);
  }

  // partial[part][output], in this order for any number of threads.
  void combine_parts(Byte* partial) const {
    const int64_t grain = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, parts_));
    parallel_for(plan_.outputs, grain, [&](int64_t begin, int64_t end) {
      States states;
      Byte* s = states.bytes.data();
      AxisCursor at(plan_.kept.data(), plan_.kept_rank, begin);
      for (int64_t o = begin; o < end; ++o, at.next()) {
        body_.init(s, 1);
        for (int64_t p = 0; p < parts_; ++p)
          body_.combine(s, nth(partial, p * plan_.outputs + o), 1);
        body_.write(s, 1, at, 0, 0, plan_.count);
      }
    });
  }

  const ReducePlan& plan_;
  const ReduceStates& body_;
  int64_t parts_ = 1;  // pieces that each output's values are split into
  int64_t fold_ = 1;   // rows taken as one
};

}  // namespace

void drive_reduction(const ReducePlan& plan, const ReduceStates& body) { Driver(plan, body).run(); }

}  // namespace gable::cpu
