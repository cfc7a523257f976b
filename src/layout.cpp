// SPDX-License-Identifier: Apache-2.0
// Layout: view arithmetic in checked 64-bit integers.
#include "gable/core/layout.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <type_traits>

namespace gable {

static_assert(std::is_trivially_copyable_v<Layout>);

namespace {

int64_t checked_mul(int64_t a, int64_t b, Where where) {
  int64_t r = 0;
  check(!__builtin_mul_overflow(a, b, &r), where, "expected products within 64 bits, got ", a,
        " * ", b);
  return r;
}

int64_t checked_add(int64_t a, int64_t b, Where where) {
  int64_t r = 0;
  check(!__builtin_add_overflow(a, b, &r), where, "expected sums within 64 bits, got ", a, " + ",
        b);
  return r;
}

// For strides that no element needs: any value will do where the product or sum is too large.
int64_t mul_or_one(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? 1 : r;
}
int64_t add_or_one(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? 1 : r;
}

// True if a dimension of stride `outer` continues one of `size` elements of stride `inner`.
bool continues(int64_t outer, int64_t size, int64_t inner) {
  int64_t r = 0;
  return !__builtin_mul_overflow(size, inner, &r) && r == outer;
}

// Sizes >= 0 and their product within 64 bits even if a zero hides it.
void check_shape(const Shape& shape, Where where) {
  int64_t n = 1;
  for (int64_t s : shape) {
    check(s >= 0, where, "expected sizes >= 0, got shape ", shape);
    if (s > 0)
      check(!__builtin_mul_overflow(n, s, &n), where,
            "expected fewer than 2^63 elements, got shape ", shape);
  }
}

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
