// SPDX-License-Identifier: Apache-2.0
// Normalisation layers, instantiated for the float types.
#include "gable/nn/norm.hpp"

namespace gable::nn {
GABLE_MODULE(, BatchNorm)
GABLE_MODULE(, BatchNorm1d)
GABLE_MODULE(, BatchNorm2d)
GABLE_MODULE(, LayerNorm)
GABLE_MODULE(, RMSNorm)
}  // namespace gable::nn
