// SPDX-License-Identifier: Apache-2.0
// MLP, instantiated for the float types.
#include "gable/models/mlp.hpp"

namespace gable::models {
GABLE_MODULE(, MLP)
}  // namespace gable::models
