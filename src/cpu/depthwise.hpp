// SPDX-License-Identifier: Apache-2.0
// Direct loops of depthwise convolutions (one input and one output channel a group).
#pragma once

#include "gable/ops/conv_geometry.hpp"

namespace gable::cpu {

/// Each runs the call and returns true if it is depthwise, else leaves it alone.
template <class T>
bool depthwise(const Conv2dArgs<T>& a);
template <class T>
bool depthwise(const Conv2dInputGradArgs<T>& a);
template <class T>
bool depthwise(const Conv2dWeightGradArgs<T>& a);

}  // namespace gable::cpu
