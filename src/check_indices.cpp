// SPDX-License-Identifier: Apache-2.0
// Range check of indices.
#include "gable/ops/check_indices.hpp"

namespace gable::detail {

void check_indices(Where op, const Tensor<int64_t>& indices, int64_t bound,
                   std::optional<int64_t> ignored) {
  launch(indices.device(), CheckIndicesArgs{indices.view(), bound, ignored, op});
}

}  // namespace gable::detail
