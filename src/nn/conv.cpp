// SPDX-License-Identifier: Apache-2.0
// Convolution layers, instantiated for the float types.
#include "gable/nn/conv.hpp"

namespace gable::nn {
GABLE_MODULE(, Conv1d)
GABLE_MODULE(, Conv2d)
GABLE_MODULE(, ConvTranspose2d)
}  // namespace gable::nn
