// SPDX-License-Identifier: Apache-2.0
// Softmax layers, instantiated for the float types.
#include "gable/nn/softmax.hpp"

namespace gable::nn {
GABLE_MODULE(, Softmax)
GABLE_MODULE(, LogSoftmax)
}  // namespace gable::nn
