// SPDX-License-Identifier: Apache-2.0
// Activation layers, instantiated for the float types.
#include "gable/nn/activation.hpp"

namespace gable::nn {
GABLE_MODULE(, ReLU)
GABLE_MODULE(, SiLU)
GABLE_MODULE(, Tanh)
GABLE_MODULE(, Sigmoid)
GABLE_MODULE(, Softplus)
GABLE_MODULE(, LeakyReLU)
GABLE_MODULE(, GELU)
GABLE_MODULE(, Dropout)
}  // namespace gable::nn
