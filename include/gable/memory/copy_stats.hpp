// SPDX-License-Identifier: Apache-2.0
// Counters of copies that the user did not ask for.
#pragma once

#include <cstdint>

namespace gable {

/// What operators copied behind the caller's back, process-wide since the last reset.
struct CopyStats {
  int64_t hidden_copies = 0;       ///< strided inputs made dense inside an operator
  int64_t layout_conversions = 0;  ///< of these, row-major <-> channels-last
  int64_t autocasts = 0;           ///< operands that amp::autocast cast
};

[[nodiscard]] CopyStats copy_stats();
void reset_copy_stats();

namespace detail {
void count_hidden_copy(bool layout_conversion);
void count_autocast();
}  // namespace detail

}  // namespace gable
