// SPDX-License-Identifier: Apache-2.0
// AnyTensor: dtype (a run-time value) + Storage + Layout. What the autograd engine, state dicts
// and files work on; Tensor<T> is its typed face.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "gable/core/device.hpp"
#include "gable/core/dtype.hpp"
#include "gable/core/layout.hpp"
#include "gable/memory/storage.hpp"
#include "gable/tensor/view.hpp"

namespace gable {

template <Element T>
class Tensor;

/// A cheap handle to strided elements of a run-time type. Copies share the memory.
class AnyTensor {
 public:
  /// Undefined: no dtype, no memory.
  AnyTensor() = default;
  /// A view over `storage`. Throws ShapeError if the layout leaves the storage.
  AnyTensor(Storage storage, const Layout& layout, DType dtype, Where where = "tensor");

  /// Uninitialised, dense.
  static AnyTensor empty(const Layout& layout, DType dtype, Device device = kCpu);
  static AnyTensor zeros(const Layout& layout, DType dtype, Device device = kCpu);

  [[nodiscard]] bool defined() const { return defined_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] Device device() const { return storage_.device(); }
  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] const Shape& shape() const { return layout_.shape(); }
  [[nodiscard]] int64_t numel() const { return layout_.numel(); }
  [[nodiscard]] int64_t bytes() const { return numel() * size_of(dtype_); }
  [[nodiscard]] const Storage& storage() const { return storage_; }
  /// Elements that the storage holds, for as_strided.
  [[nodiscard]] int64_t storage_elements() const { return storage_.bytes() / size_of(dtype_); }
  /// Address of the element of index (0, ..., 0).
  [[nodiscard]] void* data() const {
    return static_cast<char*>(storage_.data()) + layout_.offset() * size_of(dtype_);
  }
  [[nodiscard]] AnyView view() const { return {data(), layout_.with_offset(0), dtype_}; }
  /// For writing: counts the write. Throws ShapeError if two indices address one element.
  [[nodiscard]] AnyView write_view(Where where) const;

  /// The typed face. Throws TypeError if the dtype is another.
  template <Element T>
  [[nodiscard]] Tensor<T> as(Where where = "as") const;
  /// The same memory under another layout over the same storage, unchecked beyond construction.
  [[nodiscard]] AnyTensor with(const Layout& layout) const;

  [[nodiscard]] AnyTensor reshape(const Shape& shape) const;
  [[nodiscard]] AnyTensor contiguous(MemoryFormat format = MemoryFormat::row_major) const;
  /// A copy with fresh memory; keeps the dimension order of a dense layout.
  [[nodiscard]] AnyTensor clone() const;
  /// This tensor, or a copy of another dtype. Float to integer truncates; out of range is
  /// unspecified but never undefined.
  [[nodiscard]] AnyTensor to(DType dtype) const;
  [[nodiscard]] AnyTensor to(Device device) const;
  /// Copies and converts `source`, broadcast to this shape, into this tensor. Overlap behaves as
  /// if the source were cloned first. Throws ShapeError; nothing is written then.
  void copy_(const AnyTensor& source, Where where = "copy_") const;
  void zero_() const;
  /// this += source in the arithmetic of this dtype; for gradient accumulation.
  void accumulate_(const AnyTensor& source, Where where = "accumulate") const;

 private:
  Storage storage_;
  Layout layout_;
  DType dtype_ = DType::float32;
  bool defined_ = false;
};

/// True if the two views may share a byte (compares address ranges, not storages).
[[nodiscard]] bool may_share_memory(const AnyTensor& a, const AnyTensor& b);

/// Text as NumPy prints it: values by row, long axes shortened, then shape, dtype and device.
[[nodiscard]] std::string to_string(const AnyTensor& tensor);

namespace detail {
/// `x` itself if dense in `format`, else a dense copy, which is counted as hidden.
[[nodiscard]] AnyTensor materialize(const AnyTensor& x, MemoryFormat format);
/// `input`, or a clone where it shares memory with `output` other than element by element.
[[nodiscard]] AnyTensor separate(const AnyTensor& input, const AnyTensor& output);
void check_same_device(Where where, const AnyTensor& a, const AnyTensor& b);
}  // namespace detail

}  // namespace gable
