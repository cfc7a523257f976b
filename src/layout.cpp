// SPDX-License-Identifier: Apache-2.0
// Layout: flags, reach, overlap, memory order; the views are in layout_views.cpp.
#include "gable/core/layout.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <type_traits>

#include "layout_math.hpp"

namespace gable {

using detail::check_shape;
using detail::checked_add;
using detail::checked_mul;
using detail::continues;

static_assert(std::is_trivially_copyable_v<Layout>);

namespace {

// Dimension order of memory, outermost first, of the dims with size > 1.
Dims memory_order(const Shape& shape, const Strides& strides) {
  Dims order;
  for (int d = 0; d < shape.size(); ++d)
    if (shape[d] != 1) order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(strides[static_cast<int>(a)]) > std::abs(strides[static_cast<int>(b)]);
  });
  return order;
}

bool dense_in_order(const Shape& shape, const Strides& strides, const Dims& inner_last) {
  int64_t expected = 1;
  for (int i = inner_last.size() - 1; i >= 0; --i) {
    const int d = static_cast<int>(inner_last[i]);
    if (shape[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

Dims channels_last_order(int rank) {
  Dims order{0};
  for (int d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}

Dims row_major_order(int rank) {
  Dims order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  return order;
}

Strides dense_strides(const Shape& shape, const Dims& inner_last) {
  Strides strides = Dims::filled(shape.size(), 1);
  int64_t step = 1;
  for (int i = inner_last.size() - 1; i >= 0; --i) {
    const int d = static_cast<int>(inner_last[i]);
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

}  // namespace

int wrap_dim(int64_t dim, int rank, Where where) {
  const int64_t bound = std::max(rank, 1);
  check<IndexError>(dim >= -bound && dim < bound, where, "expected a dimension in [", -bound, ", ",
                    bound - 1, "], got ", dim);
  return static_cast<int>(dim < 0 ? dim + bound : dim);
}

Dims wrap_dims(const Dims& dims, int rank, Where where) {
  if (dims.empty()) return row_major_order(rank);
  Dims out;
  for (int64_t d : dims) {
    const int w = wrap_dim(d, rank, where);
    check<ShapeError>(!out.contains(w), where, "expected different dimensions, got ", dims);
    if (rank > 0) out.push_back(w);
  }
  return out;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, Where where) {
  const int rank = std::max(a.size(), b.size());
  Shape out = Dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t x = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t y = i <= b.size() ? b[b.size() - i] : 1;
    check(x == y || x == 1 || y == 1, where, "expected shapes that broadcast together, got ", a,
          " and ", b);
    out[rank - i] = x == 1 ? y : x;
  }
  return out;
}

Layout::Layout(const Shape& shape, MemoryFormat format) : shape_(shape) {
  check_shape(shape, "layout");
  check(format == MemoryFormat::row_major || shape.size() >= 3, "layout",
        "expected rank >= 3 for channels_last, got shape ", shape);
  strides_ =
      dense_strides(shape, format == MemoryFormat::row_major ? row_major_order(shape.size())
                                                             : channels_last_order(shape.size()));
  refresh();
}

Layout::Layout(const Shape& shape, const Strides& strides, int64_t offset, Where where)
    : shape_(shape), strides_(strides), offset_(offset) {
  check_shape(shape, where);
  check(shape.size() == strides.size(), where, "expected one stride a dimension, got shape ", shape,
        " and strides ", strides);
  check(offset != std::numeric_limits<int64_t>::min(), where,
        "expected an offset whose negative exists, got ", offset);
  for (int64_t s : strides)
    check(s != std::numeric_limits<int64_t>::min(), where,
          "expected strides whose negative exists, got ", strides);
  refresh();
  (void)extent();  // overflow check
}

void Layout::refresh() {
  numel_ = gable::numel(shape_);
  const int r = rank();
  if (numel_ == 0) {
    contiguous_ = dense_ = true;
    channels_last_ = r >= 3;
    return;
  }
  contiguous_ = dense_in_order(shape_, strides_, row_major_order(r));
  channels_last_ = r >= 3 && dense_in_order(shape_, strides_, channels_last_order(r));
  dense_ = contiguous_ || channels_last_ ||
           dense_in_order(shape_, strides_, memory_order(shape_, strides_));
}

namespace {

// Looks for two indices with one offset: differences d, not all 0, with |d[k]| < size[k] and
// sum d[k] * step[k] == 0. Steps fall, so that what is left must be within reach of the rest.
struct CollisionSearch {
  int rank = 0;
  std::array<int64_t, kMaxRank> step{};
  std::array<int64_t, kMaxRank> size{};
  std::array<int64_t, kMaxRank + 1> reach{};  // of dimensions k and further
  int budget = 10000;                         // then the answer is "may collide"

  bool found(int k, int64_t sum, bool moved) {
    const auto at = static_cast<size_t>(k);
    if (k == rank) return moved && sum == 0;
    if (--budget < 0) return true;
    const int64_t rest = reach[at + 1];
    int64_t low = -(size[at] - 1);
    int64_t high = size[at] - 1;
    // |sum + d * step| <= rest
    high = std::min(high, floor_div(rest - sum, step[at]));
    low = std::max(low, -floor_div(rest + sum, step[at]));
    if (!moved) low = std::max<int64_t>(low, 0);  // d and -d are the same pair
    for (int64_t d = low; d <= high; ++d)
      if (found(k + 1, sum + d * step[at], moved || d != 0)) return true;
    return false;
  }
  static int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }
};

}  // namespace

bool Layout::overlaps_itself() const {
  if (numel_ <= 1 || dense_) return false;
  const Dims order = memory_order(shape_, strides_);
  CollisionSearch search;
  search.rank = order.size();
  bool nested = true;  // each dimension steps over all inner ones
  uint64_t reach = 0;
  for (int i = order.size() - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    const int d = static_cast<int>(order[i]);
    const int64_t step = std::abs(strides_[d]);
    if (step == 0) return true;
    nested &= static_cast<uint64_t>(step) > reach;
    reach += static_cast<uint64_t>(step) * static_cast<uint64_t>(shape_[d] - 1);
    if (reach >= uint64_t{1} << 61) return !nested || i > 0;  // larger than any memory
    search.step[at] = step;
    search.size[at] = shape_[d];
    search.reach[at] = static_cast<int64_t>(reach);
  }
  return !nested && search.found(0, 0, false);
}

Extent Layout::extent() const {
  if (numel_ == 0) return {offset_, offset_ - 1};
  Extent e{offset_, offset_};
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] == 1) continue;
    const int64_t reach = checked_mul(shape_[d] - 1, strides_[d], "layout");
    int64_t& end = reach < 0 ? e.low : e.high;
    end = checked_add(end, reach, "layout");
  }
  return e;
}

int64_t Layout::offset_of(std::span<const int64_t> index, Where where) const {
  check<IndexError>(static_cast<int>(index.size()) == rank(), where, "expected ", rank(),
                    " indices for shape ", shape_, ", got ", index.size());
  int64_t at = offset_;
  for (int d = 0; d < rank(); ++d) {
    int64_t i = index[static_cast<size_t>(d)];
    check<IndexError>(i >= -shape_[d] && i < shape_[d], where, "expected an index in [", -shape_[d],
                      ", ", shape_[d] - 1, "] for dimension ", d, " of shape ", shape_, ", got ",
                      i);
    if (i < 0) i += shape_[d];
    at += i * strides_[d];
  }
  return at;
}

int Layout::wrap_dim(int64_t dim, Where where) const {
  check<IndexError>(rank() > 0, where, "expected a tensor with dimensions, got a scalar");
  return gable::wrap_dim(dim, rank(), where);
}

Layout Layout::coalesce() const {
  Layout out = *this;
  out.shape_ = {};
  out.strides_ = {};
  for (int d = 0; d < rank(); ++d) {
    if (shape_[d] == 1) continue;
    if (!out.shape_.empty() && continues(out.strides_.back(), shape_[d], strides_[d])) {
      out.shape_.back() *= shape_[d];
      out.strides_.back() = strides_[d];
      continue;
    }
    out.shape_.push_back(shape_[d]);
    out.strides_.push_back(strides_[d]);
  }
  out.refresh();
  return out;
}

Layout Layout::like() const {
  if (contiguous_) return Layout(shape_);
  if (channels_last_) return Layout(shape_, MemoryFormat::channels_last);
  if (overlaps_itself()) return Layout(shape_);
  Layout out = *this;
  out.offset_ = 0;
  // All dims (size-1 ones included) by decreasing stride; ties keep their order.
  Dims order = row_major_order(rank());
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(strides_[static_cast<int>(a)]) > std::abs(strides_[static_cast<int>(b)]);
  });
  out.strides_ = dense_strides(shape_, order);
  out.refresh();
  return out;
}

Layout Layout::with_offset(int64_t offset) const {
  Layout out = *this;
  out.offset_ = offset;
  return out;
}

void append(std::string& out, const Layout& layout) {
  out += concat(layout.shape(), " strides ", layout.strides(), " offset ", layout.offset());
}

}  // namespace gable
