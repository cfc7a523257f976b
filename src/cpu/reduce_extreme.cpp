// SPDX-License-Identifier: Apache-2.0
// max, min, all, any.
#include "reduce-inl.hpp"

namespace gable {
GABLE_CPU_KERNEL_ALL(MaxArgs)
GABLE_CPU_KERNEL_ALL(MinArgs)
GABLE_CPU_KERNEL_ALL(AllArgs)
GABLE_CPU_KERNEL_ALL(AnyArgs)
}  // namespace gable
