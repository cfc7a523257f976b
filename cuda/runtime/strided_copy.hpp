// SPDX-License-Identifier: Apache-2.0
// The copy, fill and scale kernels, for use inside other operators.
#pragma once

#include "gable/core/device.hpp"
#include "gable/tensor/kernels.hpp"
#include "gable/tensor/view.hpp"

namespace gable::cuda {

/// to = from, converting; both on the stream's device, equal shapes, any strides.
void strided_copy(const AnyView& to, const AnyView& from, const Stream& stream);

template <class T>
[[nodiscard]] AnyView any_view(const TensorView<T>& view) {
  using Value = std::remove_const_t<T>;
  return {const_cast<Value*>(view.data), view.layout, dtype_of<Value>};
}

/// Zeros; any strides. For the float types.
template <class T>
void fill_zero(const TensorView<T>& view, const Stream& stream);

/// view *= factor; any strides. For float and double.
template <class T>
void scale_by(const TensorView<T>& view, double factor, const Stream& stream);

}  // namespace gable::cuda
