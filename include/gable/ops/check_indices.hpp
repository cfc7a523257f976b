// SPDX-License-Identifier: Apache-2.0
// The check that indices and class labels are in range, before anything is written.
#pragma once

#include <cstdint>
#include <optional>

#include "gable/ops/op.hpp"

namespace gable {

/// Throws IndexError, naming `op` and the first position, unless all indices are in [0, bound) or
/// equal to `ignored`. (A backend that cannot throw at once reports at the next synchronisation.)
struct CheckIndicesArgs {
  static constexpr const char* name = "check_indices";
  TensorView<const int64_t> indices;
  int64_t bound;
  std::optional<int64_t> ignored;
  Where op;
  [[nodiscard]] Cost cost() const {
    return {.flops = indices.numel(), .bytes_read = indices.bytes()};
  }
};

namespace detail {
/// Launches it. (Not inline, so that kernels' files may include this header.)
void check_indices(Where op, const Tensor<int64_t>& indices, int64_t bound,
                   std::optional<int64_t> ignored = {});
}  // namespace detail

}  // namespace gable
