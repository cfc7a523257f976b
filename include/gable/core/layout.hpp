// SPDX-License-Identifier: Apache-2.0
// Layout: shape, strides and offset in elements. All view arithmetic of the library lives here.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gable/core/dims.hpp"
#include "gable/core/error.hpp"

namespace gable {

/// How a dense tensor lies in memory. `channels_last` is (N, C, ...) stored as (N, ..., C).
enum class MemoryFormat : uint8_t { row_major, channels_last };

/// Least and greatest element offset that a layout reaches (both inclusive).
struct Extent {
  int64_t low = 0;
  int64_t high = -1;  ///< below `low` when the layout has no elements
};

/// Shape, strides and offset, in elements; knows no element type and no memory. Trivially
/// copyable. Every function returns a new Layout and throws ShapeError or IndexError, naming
/// `op`, before anything is touched. Dimensions may be negative and count from the end.
class Layout {
 public:
  Layout() { refresh(); }
  /// Dense layout of `shape`. Throws ShapeError for negative sizes and for more than 2^63-1
  /// elements.
  explicit Layout(const Shape& shape, MemoryFormat format = MemoryFormat::row_major);
  /// Any strides; sizes and reach are overflow-checked. No storage is known here.
  Layout(const Shape& shape, const Strides& strides, int64_t offset, Where where = "layout");

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const Strides& strides() const { return strides_; }
  [[nodiscard]] int64_t offset() const { return offset_; }
  [[nodiscard]] int rank() const { return shape_.size(); }
  [[nodiscard]] int64_t numel() const { return numel_; }
  /// Size of one dimension; negative counts from the end.
  [[nodiscard]] int64_t size(int64_t dim) const { return shape_[wrap_dim(dim, "size")]; }
  [[nodiscard]] int64_t stride(int64_t dim) const { return strides_[wrap_dim(dim, "stride")]; }

  /// Row-major without gaps. Strides of size-1 dimensions are irrelevant; empty counts as true.
  [[nodiscard]] bool is_contiguous() const { return contiguous_; }
  /// (N, C, spatial...) stored channels last without gaps.
  [[nodiscard]] bool is_channels_last() const { return channels_last_; }
  [[nodiscard]] bool is_contiguous(MemoryFormat f) const {
    return f == MemoryFormat::row_major ? contiguous_ : channels_last_;
  }
  /// The elements fill one gapless range once each, in any dimension order, and no stride is
  /// negative.
  [[nodiscard]] bool is_dense() const { return dense_; }
  /// True if two indices may address one element. Exact but for as_strided layouts with many
  /// interleaving strides, where the search for a collision is cut short and the answer is true.
  [[nodiscard]] bool overlaps_itself() const;

  /// Offset range reached, in checked arithmetic.
  [[nodiscard]] Extent extent() const;
  /// Offset of the element at `index` (one value a dimension, checked).
  [[nodiscard]] int64_t offset_of(std::span<const int64_t> index, Where where = "index") const;

  /// `length` elements of `dim` from `start`; a negative start wraps once, then is checked.
  [[nodiscard]] Layout narrow(int64_t dim, int64_t start, int64_t length,
                              Where where = "narrow") const;
  /// Drops `dim` at `index` (negative wraps).
  [[nodiscard]] Layout select(int64_t dim, int64_t index, Where where = "select") const;
  /// Elements start, start+step, ... before stop, as Python's slice: out-of-range bounds clamp,
  /// step may be negative, not 0. nullopt is "from the end that step starts at" / "to the other".
  [[nodiscard]] Layout slice(int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop,
                             int64_t step = 1, Where where = "slice") const;
  [[nodiscard]] Layout transpose(int64_t a, int64_t b, Where where = "transpose") const;
  [[nodiscard]] Layout permute(const Dims& order, Where where = "permute") const;
  [[nodiscard]] Layout squeeze(int64_t dim, Where where = "squeeze") const;
  [[nodiscard]] Layout squeeze() const;
  [[nodiscard]] Layout unsqueeze(int64_t dim, Where where = "unsqueeze") const;
  /// Broadcasts to `shape`; -1 keeps a size. New and size-1 dimensions get stride 0.
  [[nodiscard]] Layout expand(const Shape& shape, Where where = "expand") const;
  /// The same elements under another shape, or nullopt where strides cannot express it. One size
  /// may be -1. Throws ShapeError when the element counts differ.
  [[nodiscard]] std::optional<Layout> view(const Shape& shape, Where where = "view") const;
  /// Resolves a -1 in `shape` against numel().
  [[nodiscard]] Shape resolve_shape(const Shape& shape, Where where = "view") const;
  /// The shape with dimensions first..last merged into one.
  [[nodiscard]] Shape flatten_shape(int64_t first, int64_t last, Where where = "flatten") const;
  /// Windows of `size` every `step` along `dim`; the window index is appended last.
  [[nodiscard]] Layout unfold(int64_t dim, int64_t size, int64_t step,
                              Where where = "unfold") const;
  /// Diagonal of dims (a, b) shifted by `offset`, appended last.
  [[nodiscard]] Layout diagonal(int64_t offset, int64_t a, int64_t b,
                                Where where = "diagonal") const;
  [[nodiscard]] Layout flip(const Dims& dims, Where where = "flip") const;
  /// Any shape, strides and offset over a storage of `storage_elements`. Throws ShapeError with
  /// all of them when an index would fall outside.
  static Layout as_strided(const Shape& shape, const Strides& strides, int64_t offset,
                           int64_t storage_elements, Where where = "as_strided");

  /// Same elements, fewest dimensions, in the same order of visit; size-1 dimensions vanish.
  [[nodiscard]] Layout coalesce() const;
  /// Dense layout of this shape whose dimensions lie in memory in the same order as here
  /// ("preserve format"); row-major where this one is not dense or expanded.
  [[nodiscard]] Layout like() const;
  /// This layout at another offset.
  [[nodiscard]] Layout with_offset(int64_t offset) const;

  /// Maps a dimension in [-rank, rank) to [0, rank). Throws IndexError.
  [[nodiscard]] int wrap_dim(int64_t dim, Where where) const;

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.shape_ == b.shape_ && a.strides_ == b.strides_ && a.offset_ == b.offset_;
  }

 private:
  void refresh();  // recomputes numel and flags after a change

  Shape shape_;
  Strides strides_;
  int64_t offset_ = 0;
  int64_t numel_ = 1;
  bool contiguous_ = true;
  bool channels_last_ = false;
  bool dense_ = true;
};

/// Maps `dim` in [-rank, rank) to [0, rank); a scalar (rank 0) takes 0 and -1. Throws IndexError.
[[nodiscard]] int wrap_dim(int64_t dim, int rank, Where where);
/// The same for a list; throws on repeats. An empty list means all dimensions.
[[nodiscard]] Dims wrap_dims(const Dims& dims, int rank, Where where);
/// NumPy broadcasting of two shapes. Throws ShapeError that prints both.
[[nodiscard]] Shape broadcast_shapes(const Shape& a, const Shape& b, Where where);

void append(std::string& out, const Layout& layout);  // "(2, 3) strides (3, 1) offset 0"

}  // namespace gable
