// SPDX-License-Identifier: Apache-2.0
// Copies on one device, cut into files by what they convert.
#pragma once

#include "gable/tensor/kernels.hpp"

namespace gable::cuda {

/// dst = src or dst += src on the stream's device, converting; shapes are equal.
void copy_on_device(const AnyView& dst, const AnyView& src, bool accumulate, const Stream& stream);

/// dst += src in the arithmetic of dst's dtype.
void add_on_device(const AnyView& dst, const AnyView& src, const Stream& stream);

/// dst = src of another dtype; instantiated a file a destination type.
template <class To>
void convert_copy(const AnyView& dst, const AnyView& src, const Stream& stream);

}  // namespace gable::cuda
