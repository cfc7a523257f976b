// SPDX-License-Identifier: Apache-2.0
// autocast: matrix products and convolutions of float code in a 16-bit type, for a scope.
//
//   {
//     amp::autocast<bfloat16> scope;
//     loss = cross_entropy(model(images), labels);
//   }
//   loss.backward();
#pragma once

#include <concepts>

#include "gable/ops/autocast.hpp"

namespace gable::amp {

/// While it lives, matmul, linear, conv1d, conv2d and conv_transpose2d of floats on this thread
/// cast their operands to T (bfloat16 or half), accumulate in float, and return float again, also
/// inside modules. Other operators, `_out` forms and operands of other types are as ever; gradients
/// reach float leaves in float. Nests; autocast<float> switches it off inside another. Backward
/// needs no scope, and checkpoint() computes again under the scope of its forward.
///
/// A leaf that is used again before the outermost scope ends is not cast again, unless it was
/// written in between by an operator (writes through data() or (i, j) go unnoticed).
/// Casts are counted in copy_stats(). docs/mixed_precision.md has the table.
template <FloatElement T>
requires(!std::same_as<T, double>) class [[nodiscard]] autocast {
 public:
  autocast() : scope_(dtype_of<T>) {}

 private:
  detail::AutocastScope scope_;
};

using autocast_off = autocast<float>;

}  // namespace gable::amp
