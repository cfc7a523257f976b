// SPDX-License-Identifier: Apache-2.0
// TensorView<T>: pointer plus Layout, all that a kernel sees of a tensor.
#pragma once

#include <cstdint>

#include "gable/core/dtype.hpp"
#include "gable/core/layout.hpp"

namespace gable {

/// `data` points at the element of index (0, ..., 0); `layout.offset()` is already in it. Does
/// not own memory. `T` may be const. Trivially copyable.
template <class T>
struct TensorView {
  T* data = nullptr;
  Layout layout;

  [[nodiscard]] const Shape& shape() const { return layout.shape(); }
  [[nodiscard]] const Strides& strides() const { return layout.strides(); }
  [[nodiscard]] int rank() const { return layout.rank(); }
  [[nodiscard]] int64_t numel() const { return layout.numel(); }
  [[nodiscard]] int64_t size(int d) const { return layout.shape()[d]; }
  [[nodiscard]] int64_t stride(int d) const { return layout.strides()[d]; }
  [[nodiscard]] int64_t bytes() const { return numel() * static_cast<int64_t>(sizeof(T)); }
  operator TensorView<const T>() const { return {data, layout}; }  // NOLINT
};

/// The same with a run-time element type.
struct AnyView {
  void* data = nullptr;
  Layout layout;
  DType dtype = DType::float32;

  [[nodiscard]] int64_t bytes() const { return layout.numel() * size_of(dtype); }
  template <class T>
  [[nodiscard]] TensorView<T> as() const {
    return {static_cast<T*>(data), layout};
  }
};

}  // namespace gable
