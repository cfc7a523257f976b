// SPDX-License-Identifier: Apache-2.0
// Pooling and flattening layers, instantiated for the float types.
#include "gable/nn/pool.hpp"

namespace gable::nn {
GABLE_MODULE(, MaxPool2d)
GABLE_MODULE(, AvgPool2d)
GABLE_MODULE(, AdaptiveAvgPool2d)
GABLE_MODULE(, Flatten)
}  // namespace gable::nn
