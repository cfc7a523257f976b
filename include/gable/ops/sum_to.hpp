// SPDX-License-Identifier: Apache-2.0
// sum_to: the adjoint of broadcasting.
#pragma once

#include "gable/tensor/tensor.hpp"

namespace gable {

/// Sums `x` over the dimensions that broadcasting to x's shape added or stretched, so that the
/// result has `shape`. Returns x itself if the shapes are equal. 16-bit types accumulate in float.
template <FloatElement T>
[[nodiscard]] Tensor<T> sum_to(const Tensor<T>& x, const Shape& shape);

extern template Tensor<float> sum_to<float>(const Tensor<float>&, const Shape&);
extern template Tensor<double> sum_to<double>(const Tensor<double>&, const Shape&);
extern template Tensor<half> sum_to<half>(const Tensor<half>&, const Shape&);
extern template Tensor<bfloat16> sum_to<bfloat16>(const Tensor<bfloat16>&, const Shape&);

}  // namespace gable
