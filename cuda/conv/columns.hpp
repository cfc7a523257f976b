// SPDX-License-Identifier: Apache-2.0
// The im2col matrix of a convolution: a row an output pixel, (groups, taps, channels of a group).
#pragma once

#include "conv/image.hpp"

namespace gable::cuda {

/// Rows [begin, end) of the matrix. Together fewer than 2^31 elements.
template <class T>
void im2col(const ConvGeometry& g, const Image<const T>& x, int64_t begin, int64_t end, T* columns,
            const Stream& stream);

/// The adjoint: each value of the dense `dx` (`images` of them, fewer than 2^31 elements) is the
/// sum of those columns that read it, in order of the taps, plus a bias of its channel if there is
/// one.
template <class T>
void col2im(const ConvGeometry& g, int64_t images, const Compute<T>* columns,
            const TensorView<const T>& bias, T* dx, const Stream& stream);

}  // namespace gable::cuda
