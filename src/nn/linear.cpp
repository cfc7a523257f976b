// SPDX-License-Identifier: Apache-2.0
// Linear; modules' base, instantiated for the float types.
#include "gable/nn/linear.hpp"

namespace gable::nn {
GABLE_MODULE(, Linear)
GABLE_MODULE(, Module)
}  // namespace gable::nn
