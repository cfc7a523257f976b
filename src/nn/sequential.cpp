// SPDX-License-Identifier: Apache-2.0
// Containers, instantiated for the float types.
#include "gable/nn/sequential.hpp"

namespace gable::nn {
GABLE_MODULE(, Sequential)
GABLE_MODULE(, Identity)
GABLE_MODULE(, Lambda)
}  // namespace gable::nn
