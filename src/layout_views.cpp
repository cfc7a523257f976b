// SPDX-License-Identifier: Apache-2.0
// Layout: the views, each checked before anything is computed.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include "gable/core/layout.hpp"
#include "layout_math.hpp"

namespace gable {

using detail::add_or_one;
using detail::check_shape;
using detail::checked_mul;
using detail::continues;
using detail::mul_or_one;

Layout Layout::narrow(int64_t dim, int64_t start, int64_t length, Where where) const {
  const int d = wrap_dim(dim, where);
  const int64_t n = shape_[d];
  const int64_t from = start < 0 ? start + n : start;
  check<IndexError>(from >= 0 && from <= n && length >= 0 && length <= n - from, where,
                    "expected start and length within size ", n, " of dimension ", d, " of shape ",
                    shape_, ", got start ", start, " length ", length);
  Layout out = *this;
  out.shape_[d] = length;
  out.refresh();
  if (out.numel_ > 0) out.offset_ += from * strides_[d];
  return out;
}

Layout Layout::select(int64_t dim, int64_t index, Where where) const {
  const int d = wrap_dim(dim, where);
  const int64_t n = shape_[d];
  check<IndexError>(index >= -n && index < n, where, "expected an index in [", -n, ", ", n - 1,
                    "] for dimension ", d, " of shape ", shape_, ", got ", index);
  Layout out = *this;
  out.shape_.erase(d);
  out.strides_.erase(d);
  out.refresh();
  if (out.numel_ > 0) out.offset_ += (index < 0 ? index + n : index) * strides_[d];
  return out;
}

Layout Layout::slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop,
                     int64_t step, Where where) const {
  const int d = wrap_dim(dim, where);
  const int64_t n = shape_[d];
  check<IndexError>(step != 0 && step != std::numeric_limits<int64_t>::min(), where,
                    "expected a step other than 0, got ", step, " for shape ", shape_);
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? n : n - 1;
  auto clamp = [&](int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  const int64_t from = start ? clamp(*start) : (step > 0 ? low : high);
  const int64_t to = stop ? clamp(*stop) : (step > 0 ? high : low);
  const int64_t span = step > 0 ? to - from : from - to;
  const int64_t stride = std::abs(step);
  const int64_t count = span <= 0 ? 0 : (span - 1) / stride + 1;
  Layout out = *this;
  out.shape_[d] = count;
  if (count > 1) out.strides_[d] = mul_or_one(strides_[d], step);
  out.refresh();
  if (out.numel_ > 0) out.offset_ += from * strides_[d];
  return out;
}

Layout Layout::transpose(int64_t a, int64_t b, Where where) const {
  const int i = wrap_dim(a, where);
  const int j = wrap_dim(b, where);
  Layout out = *this;
  std::swap(out.shape_[i], out.shape_[j]);
  std::swap(out.strides_[i], out.strides_[j]);
  out.refresh();
  return out;
}

Layout Layout::permute(const Dims& order, Where where) const {
  check(order.size() == rank(), where, "expected an order of ", rank(), " dimensions for shape ",
        shape_, ", got ", order);
  const Dims wrapped = wrap_dims(order, rank(), where);
  Layout out = *this;
  for (int d = 0; d < rank(); ++d) {
    out.shape_[d] = shape_[static_cast<int>(wrapped[d])];
    out.strides_[d] = strides_[static_cast<int>(wrapped[d])];
  }
  out.refresh();
  return out;
}

Layout Layout::squeeze(int64_t dim, Where where) const {
  const int d = wrap_dim(dim, where);
  Layout out = *this;
  if (shape_[d] != 1) return out;
  out.shape_.erase(d);
  out.strides_.erase(d);
  out.refresh();
  return out;
}

Layout Layout::squeeze() const {
  Layout out = *this;
  for (int d = rank() - 1; d >= 0; --d) {
    if (shape_[d] != 1) continue;
    out.shape_.erase(d);
    out.strides_.erase(d);
  }
  out.refresh();
  return out;
}

Layout Layout::unsqueeze(int64_t dim, Where where) const {
  const int d = gable::wrap_dim(dim, rank() + 1, where);
  Layout out = *this;
  out.strides_.insert(d, d < rank() ? mul_or_one(shape_[d], strides_[d]) : 1);
  out.shape_.insert(d, 1);
  out.refresh();
  return out;
}

Layout Layout::expand(const Shape& shape, Where where) const {
  check(shape.size() >= rank(), where, "expected at least ", rank(), " dimensions for shape ",
        shape_, ", got ", shape);
  Layout out = *this;
  out.shape_ = shape;
  out.strides_ = Dims::filled(shape.size(), 0);
  const int lead = shape.size() - rank();
  for (int d = 0; d < shape.size(); ++d) {
    if (d < lead) {
      check(shape[d] >= 0, where, "expected sizes >= 0 for new dimensions, got ", shape);
      continue;
    }
    const int64_t have = shape_[d - lead];
    if (shape[d] == -1) out.shape_[d] = have;
    check(out.shape_[d] == have || have == 1, where, "expected a shape that ", shape_,
          " broadcasts to, got ", shape);
    if (out.shape_[d] == have) out.strides_[d] = strides_[d - lead];
  }
  check_shape(out.shape_, where);
  out.refresh();
  return out;
}

Shape Layout::resolve_shape(const Shape& shape, Where where) const {
  Shape out = shape;
  int unknown = -1;
  int64_t known = 1;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      check(unknown < 0, where, "expected at most one -1, got ", shape);
      unknown = d;
      continue;
    }
    check(shape[d] >= 0, where, "expected sizes >= 0 or one -1, got ", shape);
    known = checked_mul(known, shape[d], where);
  }
  if (unknown >= 0) {
    check(known != 0 && numel_ % known == 0, where, "expected a shape for ", numel_,
          " elements of shape ", shape_, ", got ", shape);
    out[unknown] = numel_ / known;
    known *= out[unknown];
  }
  check(known == numel_, where, "expected a shape of ", numel_, " elements for shape ", shape_,
        ", got ", shape);
  return out;
}

std::optional<Layout> Layout::view(const Shape& shape, Where where) const {
  const Shape target = resolve_shape(shape, where);
  Layout out(target);
  out.offset_ = offset_;
  if (numel_ == 0 || contiguous_) return out;
  // Walk both shapes from the inside; a target dimension must stay within one run of source
  // dimensions that are contiguous with each other.
  int src = rank() - 1;
  int dst = target.size() - 1;
  while (dst >= 0) {
    while (src >= 0 && shape_[src] == 1) --src;
    if (src < 0) {  // only size-1 target dimensions are left
      for (; dst >= 0; --dst) out.strides_[dst] = 1;
      break;
    }
    int64_t run = shape_[src];
    const int64_t base = strides_[src];
    int next = src - 1;
    while (next >= 0 && (shape_[next] == 1 || continues(strides_[next], run, base)))
      run *= shape_[next--];
    int64_t filled = 1;
    while (dst >= 0 && filled < run) {
      out.strides_[dst] = base * filled;
      filled *= target[dst--];
    }
    if (filled != run) return std::nullopt;
    while (dst >= 0 && target[dst] == 1) out.strides_[dst--] = mul_or_one(base, filled);
    src = next;
  }
  out.refresh();
  return out;
}

Shape Layout::flatten_shape(int64_t first, int64_t last, Where where) const {
  if (rank() == 0) return {1};
  const int a = wrap_dim(first, where);
  const int b = wrap_dim(last, where);
  check(a <= b, where, "expected first <= last dimension, got ", first, " and ", last,
        " for shape ", shape_);
  Shape out;
  int64_t merged = 1;
  for (int d = 0; d < rank(); ++d) {
    if (d >= a && d <= b) merged *= shape_[d];
    if (d < a || d > b) out.push_back(shape_[d]);
    if (d == b) out.push_back(merged);
  }
  return out;
}

Layout Layout::unfold(int64_t dim, int64_t size, int64_t step, Where where) const {
  const int d = wrap_dim(dim, where);
  check(size >= 0 && size <= shape_[d], where, "expected a window within size ", shape_[d],
        " of dimension ", d, " of shape ", shape_, ", got ", size);
  check(step > 0, where, "expected a step > 0, got ", step);
  Layout out = *this;
  out.shape_[d] = (shape_[d] - size) / step + 1;
  if (out.shape_[d] > 1) out.strides_[d] = mul_or_one(strides_[d], step);
  out.shape_.push_back(size);
  out.strides_.push_back(strides_[d]);
  check_shape(out.shape_, where);
  out.refresh();
  return out;
}

Layout Layout::diagonal(int64_t offset, int64_t a, int64_t b, Where where) const {
  const int i = wrap_dim(a, where);
  const int j = wrap_dim(b, where);
  check(i != j, where, "expected two different dimensions, got ", a, " and ", b, " for shape ",
        shape_);
  check(offset > std::numeric_limits<int64_t>::min(), where, "expected a diagonal within shape ",
        shape_, ", got offset ", offset);
  const int64_t rows = shape_[i] - (offset < 0 ? std::min(-offset, shape_[i]) : 0);
  const int64_t cols = shape_[j] - (offset > 0 ? std::min(offset, shape_[j]) : 0);
  const int64_t length = std::min(rows, cols);
  Layout out = *this;
  const int64_t step = add_or_one(strides_[i], strides_[j]);
  out.shape_.erase(std::max(i, j));
  out.strides_.erase(std::max(i, j));
  out.shape_.erase(std::min(i, j));
  out.strides_.erase(std::min(i, j));
  out.shape_.push_back(length);
  out.strides_.push_back(step);
  out.refresh();
  if (out.numel_ > 0) out.offset_ += offset < 0 ? -offset * strides_[i] : offset * strides_[j];
  return out;
}

Layout Layout::flip(const Dims& dims, Where where) const {
  Layout out = *this;
  if (rank() == 0) return out;
  for (int64_t w : wrap_dims(dims, rank(), where)) {
    const int d = static_cast<int>(w);
    if (shape_[d] < 2 || numel_ == 0) continue;
    out.offset_ += (shape_[d] - 1) * strides_[d];
    out.strides_[d] = -strides_[d];
  }
  out.refresh();
  return out;
}

Layout Layout::as_strided(const Shape& shape, const Strides& strides, int64_t offset,
                          int64_t storage_elements, Where where) {
  auto refuse = [&](const char* why) {
    fail<ShapeError>(where, "expected a view inside the storage, got sizes ", shape, " strides ",
                     strides, " offset ", offset, " for a storage of ", storage_elements,
                     " elements: ", why);
  };
  if (shape.size() != strides.size()) refuse("sizes and strides differ in rank");
  for (int64_t s : shape)
    if (s < 0) refuse("a size is negative");
  if (offset < 0) refuse("the offset is negative");
  int64_t low = offset;
  int64_t high = offset;
  bool overflow = strides.contains(std::numeric_limits<int64_t>::min());
  bool has_elements = true;
  for (int64_t s : shape) has_elements &= s != 0;
  for (int d = 0; has_elements && d < shape.size(); ++d) {
    int64_t reach = 0;
    overflow |= __builtin_mul_overflow(shape[d] - 1, strides[d], &reach);
    int64_t& end = reach < 0 ? low : high;
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  if (overflow) refuse("an index does not fit in 64 bits");
  // A view without elements may stand at the end of its storage: nothing is ever read.
  if (has_elements ? (low < 0 || high >= storage_elements) : offset > storage_elements)
    refuse(low < 0 ? "an index falls before it" : "an index falls behind it");
  return {shape, strides, offset, where};
}

}  // namespace gable
