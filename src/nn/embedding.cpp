// SPDX-License-Identifier: Apache-2.0
// Embedding, instantiated for the float types.
#include "gable/nn/embedding.hpp"

namespace gable::nn {
GABLE_MODULE(, Embedding)
}  // namespace gable::nn
