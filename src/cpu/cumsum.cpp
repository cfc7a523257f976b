// SPDX-License-Identifier: Apache-2.0
// Running sums.
#include "gable/ops/softmax.hpp"
#include "kernel.hpp"
#include "lines.hpp"

namespace gable {

template <class T>
static void kernel(const CumsumArgs<T>& a) {
  using Out = SumResult<T>;
  using State = detail::WideState<T>;
  if (a.x.numel() == 0) return;  // lines of no elements have no last one
  const cpu::Lines<2> lines({&a.y.layout, &a.x.layout}, a.dim);
  const int64_t last = a.reverse ? lines.length - 1 : 0;
  const int64_t sign = a.reverse ? -1 : 1;
  lines.parallel([&](const auto& at, int64_t count) {
    Out* y = a.y.data + at[0] + last * lines.steps[0];
    const T* x = a.x.data + at[1] + last * lines.steps[1];
    State sums[cpu::kLineBlock] = {};
    for (int64_t i = 0; i < lines.length; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        sums[j] = detail::wrap_add(
            sums[j], static_cast<State>(convert<Compute<T>>(x[j * lines.neighbours[1]])));
        y[j * lines.neighbours[0]] = convert<Out>(sums[j]);
      }
      y += sign * lines.steps[0];
      x += sign * lines.steps[1];
    }
  });
}
GABLE_CPU_KERNEL_ALL(CumsumArgs)

}  // namespace gable
