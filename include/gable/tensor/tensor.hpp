// SPDX-License-Identifier: Apache-2.0
// Tensor<T>: the typed, checked handle that users work with.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gable/tensor/any_tensor.hpp"
#include "gable/tensor/backend.hpp"
#include "gable/tensor/kernels.hpp"

namespace gable {

/// A strided array of T on a device. Copying a Tensor copies the handle, not the elements, as in
/// PyTorch; clone() copies elements. Views share memory. Dimensions and indices may be negative
/// and then count from the end. All errors are thrown before anything is written.
template <Element T>
class Tensor {
 public:
  using value_type = T;
  static constexpr DType static_dtype = dtype_of<T>;

  /// Undefined; most operators refuse it with ShapeError.
  Tensor() = default;
  /// Uninitialised elements.
  explicit Tensor(const Shape& shape, Device device = kCpu,
                  MemoryFormat format = MemoryFormat::row_major)
      : any_(AnyTensor::empty(Layout(shape, format), dtype_of<T>, device)) {}
  /// Throws TypeError unless `any` holds T.
  explicit Tensor(AnyTensor any, Where where = "tensor");

  [[nodiscard]] const AnyTensor& any() const { return any_; }
  operator const AnyTensor&() const { return any_; }  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool defined() const { return any_.defined(); }
  [[nodiscard]] const Layout& layout() const { return any_.layout(); }
  [[nodiscard]] const Shape& shape() const { return any_.shape(); }
  [[nodiscard]] const Strides& strides() const { return any_.layout().strides(); }
  [[nodiscard]] int rank() const { return any_.layout().rank(); }
  [[nodiscard]] int64_t numel() const { return any_.numel(); }
  [[nodiscard]] int64_t size(int64_t dim) const { return any_.layout().size(dim); }
  [[nodiscard]] int64_t stride(int64_t dim) const { return any_.layout().stride(dim); }
  [[nodiscard]] Device device() const { return any_.device(); }
  [[nodiscard]] DType dtype() const { return dtype_of<T>; }
  [[nodiscard]] bool is_contiguous(MemoryFormat f = MemoryFormat::row_major) const {
    return any_.layout().is_contiguous(f);
  }
  /// Address of element (0, ..., 0), on device(). Writes through it are not counted as in-place.
  [[nodiscard]] T* data() const { return static_cast<T*>(any_.data()); }
  [[nodiscard]] TensorView<const T> view() const { return {data(), any_.layout().with_offset(0)}; }
  /// For writing: counts the write; throws ShapeError if two indices address one element.
  [[nodiscard]] TensorView<T> write_view(Where where) const {
    return any_.write_view(where).template as<T>();
  }

  // --- elements (CPU tensors; throw DeviceError elsewhere)

  /// Reference to one element; one checked index a dimension.
  template <std::convertible_to<int64_t>... I>
  [[nodiscard]] T& operator()(I... index) const {
    const std::array<int64_t, sizeof...(I)> at{static_cast<int64_t>(index)...};
    return element(at);
  }
  [[nodiscard]] T& at(std::initializer_list<int64_t> index) const {
    return element({index.begin(), index.size()});
  }
  /// The value of a one-element tensor on any device. Throws ShapeError for other sizes.
  [[nodiscard]] T item() const;
  /// All elements in row-major order, from any device.
  [[nodiscard]] std::vector<T> to_vector() const;

  // --- views: share memory with this tensor

  [[nodiscard]] Tensor narrow(int64_t dim, int64_t start, int64_t length) const {
    return with(layout().narrow(dim, start, length));
  }
  [[nodiscard]] Tensor select(int64_t dim, int64_t index) const {
    return with(layout().select(dim, index));
  }
  [[nodiscard]] Tensor slice(int64_t dim, std::optional<int64_t> start = {},
                             std::optional<int64_t> stop = {}, int64_t step = 1) const {
    return with(layout().slice(dim, start, stop, step));
  }
  /// select(0, index).
  [[nodiscard]] Tensor operator[](int64_t index) const { return select(0, index); }
  [[nodiscard]] Tensor transpose(int64_t a, int64_t b) const {
    return with(layout().transpose(a, b));
  }
  /// Transposed matrix: the last two dimensions swapped.
  [[nodiscard]] Tensor t() const { return transpose(-2, -1); }
  [[nodiscard]] Tensor permute(const Dims& order) const { return with(layout().permute(order)); }
  [[nodiscard]] Tensor squeeze(int64_t dim) const { return with(layout().squeeze(dim)); }
  [[nodiscard]] Tensor squeeze() const { return with(layout().squeeze()); }
  [[nodiscard]] Tensor unsqueeze(int64_t dim) const { return with(layout().unsqueeze(dim)); }
  /// The same elements in another shape without a copy; one size may be -1. Throws ShapeError
  /// where the strides cannot express it (then reshape() copies).
  [[nodiscard]] Tensor view(const Shape& shape) const;
  /// view() where possible, else a copy.
  [[nodiscard]] Tensor reshape(const Shape& shape) const { return Tensor(any_.reshape(shape)); }
  [[nodiscard]] Tensor flatten(int64_t first = 0, int64_t last = -1) const {
    return reshape(layout().flatten_shape(first, last));
  }
  [[nodiscard]] Tensor expand(const Shape& shape) const { return with(layout().expand(shape)); }
  [[nodiscard]] Tensor broadcast_to(const Shape& shape) const {
    return with(layout().expand(shape, "broadcast_to"));
  }
  [[nodiscard]] Tensor unfold(int64_t dim, int64_t size, int64_t step) const {
    return with(layout().unfold(dim, size, step));
  }
  [[nodiscard]] Tensor diagonal(int64_t offset = 0, int64_t a = 0, int64_t b = 1) const {
    return with(layout().diagonal(offset, a, b));
  }
  /// Any sizes, strides and offset (in elements of the storage), bounds- and overflow-checked
  /// against the storage. Strides may be 0 or negative.
  [[nodiscard]] Tensor as_strided(const Shape& sizes, const Strides& strides,
                                  std::optional<int64_t> offset = {}) const {
    return with(Layout::as_strided(sizes, strides, offset.value_or(layout().offset()),
                                   any_.storage_elements()));
  }

  // --- copies

  /// This tensor if dense in `format`, else a dense copy.
  [[nodiscard]] Tensor contiguous(MemoryFormat format = MemoryFormat::row_major) const {
    return Tensor(any_.contiguous(format));
  }
  [[nodiscard]] Tensor clone() const { return Tensor(any_.clone()); }
  [[nodiscard]] Tensor to(Device device) const { return Tensor(any_.to(device)); }
  /// Another element type; this handle itself if it is T.
  template <Element U>
  [[nodiscard]] Tensor<U> to() const {
    return Tensor<U>(any_.to(dtype_of<U>));
  }

  // --- writes; const because a Tensor is a handle. They throw on self-overlapping targets.

  /// Copies `source` (broadcast, converted) as if it had been cloned first. Returns *this.
  const Tensor& copy_(const AnyTensor& source) const {
    any_.copy_(source);
    return *this;
  }
  const Tensor& fill_(T value) const;
  const Tensor& zero_() const { return fill_(T{}); }

  /// The same storage under another layout; for view operators.
  [[nodiscard]] Tensor with(const Layout& layout) const { return Tensor(any_.with(layout)); }

 private:
  [[nodiscard]] T& element(std::span<const int64_t> index) const;
  AnyTensor any_;
};

// --- creation

struct TensorOptions {
  Device device = kCpu;
  MemoryFormat format = MemoryFormat::row_major;
};

template <Element T>
[[nodiscard]] Tensor<T> empty(const Shape& shape, TensorOptions o = {}) {
  return Tensor<T>(shape, o.device, o.format);
}
template <Element T>
[[nodiscard]] Tensor<T> full(const Shape& shape, T value, TensorOptions o = {}) {
  Tensor<T> out(shape, o.device, o.format);
  out.fill_(value);
  return out;
}
template <Element T>
[[nodiscard]] Tensor<T> zeros(const Shape& shape, TensorOptions o = {}) {
  return full<T>(shape, T{}, o);
}
template <Element T>
[[nodiscard]] Tensor<T> ones(const Shape& shape, TensorOptions o = {}) {
  return full<T>(shape, convert<T>(1), o);
}
/// Uninitialised, same shape and device, same order of dimensions in memory where x is dense.
template <Element T>
[[nodiscard]] Tensor<T> empty_like(const Tensor<T>& x) {
  return Tensor<T>(AnyTensor::empty(x.layout().like(), dtype_of<T>, x.device()));
}
template <Element T>
[[nodiscard]] Tensor<T> full_like(const Tensor<T>& x, T value) {
  Tensor<T> out = empty_like(x);
  out.fill_(value);
  return out;
}
template <Element T>
[[nodiscard]] Tensor<T> zeros_like(const Tensor<T>& x) {
  return full_like(x, T{});
}
template <Element T>
[[nodiscard]] Tensor<T> ones_like(const Tensor<T>& x) {
  return full_like(x, convert<T>(1));
}

/// start, start + step, ... before stop. Throws TypeError for step 0 or non-finite bounds. The
/// number of elements of integer ranges is exact in 64 bits.
template <Element T>
[[nodiscard]] Tensor<T> arange(Compute<T> start, Compute<T> stop, Compute<T> step = 1,
                               Device device = kCpu);
/// 0, 1, ... before stop.
template <Element T>
[[nodiscard]] Tensor<T> arange(Compute<T> stop, Device device = kCpu) {
  return arange<T>(Compute<T>{0}, stop, Compute<T>{1}, device);
}
/// `count` values from start to stop, both included.
template <FloatElement T>
[[nodiscard]] Tensor<T> linspace(double start, double stop, int64_t count, Device device = kCpu);
/// Identity matrix (n, m).
template <Element T>
[[nodiscard]] Tensor<T> eye(int64_t n, std::optional<int64_t> m = {}, Device device = kCpu);

/// A copy of `values` in `shape`, row-major. Throws ShapeError if the counts differ.
template <Element T>
[[nodiscard]] Tensor<T> from_data(std::span<const T> values, const Shape& shape,
                                  Device device = kCpu);
template <Element T>
[[nodiscard]] Tensor<T> from_data(std::initializer_list<T> values, const Shape& shape,
                                  Device device = kCpu) {
  return from_data<T>(std::span<const T>(values.begin(), values.size()), shape, device);
}
/// One dimension.
template <Element T>
[[nodiscard]] Tensor<T> from_data(std::initializer_list<T> values) {
  return from_data<T>(values, {static_cast<int64_t>(values.size())});
}
/// One element, rank 0.
template <Element T>
[[nodiscard]] Tensor<T> scalar(T value, Device device = kCpu) {
  return full<T>({}, value, {.device = device});
}
/// Wraps the caller's memory of numel(shape) dense row-major elements without a copy; `release`
/// (may be empty) is called with `data` when the last view goes.
template <Element T>
[[nodiscard]] Tensor<T> from_blob(T* data, const Shape& shape,
                                  std::function<void(void*)> release = {}, Device device = kCpu);

#define GABLE_EXTERN_TENSOR(T)                                                      \
  extern template class Tensor<T>;                                                  \
  extern template Tensor<T> arange<T>(Compute<T>, Compute<T>, Compute<T>, Device);  \
  extern template Tensor<T> eye<T>(int64_t, std::optional<int64_t>, Device);        \
  extern template Tensor<T> from_data<T>(std::span<const T>, const Shape&, Device); \
  extern template Tensor<T> from_blob<T>(T*, const Shape&, std::function<void(void*)>, Device);
GABLE_EXTERN_TENSOR(float)
GABLE_EXTERN_TENSOR(double)
GABLE_EXTERN_TENSOR(half)
GABLE_EXTERN_TENSOR(bfloat16)
GABLE_EXTERN_TENSOR(int32_t)
GABLE_EXTERN_TENSOR(int64_t)
GABLE_EXTERN_TENSOR(uint8_t)
GABLE_EXTERN_TENSOR(bool)
#undef GABLE_EXTERN_TENSOR

template <Element T>
Tensor<T> AnyTensor::as(Where where) const {
  return Tensor<T>(*this, where);
}

template <Element T>
[[nodiscard]] std::string to_string(const Tensor<T>& tensor) {
  return to_string(tensor.any());
}

/// `x` itself if dense in `format`, else a dense copy, which copy_stats() counts as hidden.
template <Element T>
[[nodiscard]] Tensor<T> materialize(const Tensor<T>& x,
                                    MemoryFormat format = MemoryFormat::row_major) {
  return Tensor<T>(detail::materialize(x.any(), format));
}

}  // namespace gable
