// SPDX-License-Identifier: Apache-2.0
// Range check of indices.
#include "gable/ops/check_indices.hpp"

#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {

// Row-major position and value of the first bad index.
[[noreturn]] static void report(const CheckIndicesArgs& a) {
  const Layout& layout = a.indices.layout;
  for (int64_t i = 0; i < layout.numel(); ++i) {
    Dims at = layout.shape();
    int64_t rest = i;
    int64_t offset = 0;
    for (int d = layout.rank() - 1; d >= 0; --d) {
      at[d] = rest % layout.shape()[d];
      rest /= layout.shape()[d];
      offset += at[d] * layout.strides()[d];
    }
    const int64_t value = a.indices.data[offset];
    if ((value >= 0 && value < a.bound) || value == a.ignored) continue;
    fail<IndexError>(a.op, "expected indices in [0, ", a.bound, "), got ", value, " at position ",
                     at);
  }
  fail<IndexError>(a.op, "expected indices in [0, ", a.bound, "), got others");
}

static void kernel(const CheckIndicesArgs& a) {
  const StridedLoop<1> loop({&a.indices.layout});
  const int64_t step = loop.row_strides()[0];
  bool good = true;
  loop.visit(0, loop.numel(), [&](const auto& at, int64_t n) {
    const int64_t* index = a.indices.data + at[0];
    for (int64_t i = 0; i < n; ++i) {
      const int64_t v = index[i * step];
      good &= (v >= 0 && v < a.bound) || v == a.ignored;
    }
  });
  if (!good) report(a);
}
GABLE_CPU_KERNEL(gable::CheckIndicesArgs)

}  // namespace gable
