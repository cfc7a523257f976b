// SPDX-License-Identifier: Apache-2.0
// argmax, argmin.
#include <array>

#include "gable/core/parallel.hpp"
#include "gable/ops/reduce.hpp"
#include "kernel.hpp"
#include "reduce_driver.hpp"

namespace gable {

template <class T, bool IsMax>
static void kernel(const ArgExtremeArgs<T, IsMax>& args) {
  using V = Compute<T>;
  using cpu::AxisCursor;
  using Axis = cpu::ReducePlan::Axis;
  // Positions are row-major, so that reduced axes keep their logical order.
  std::array<Axis, kMaxRank> kept{};
  std::array<Axis, kMaxRank> reduced{};
  int kept_rank = 0;
  int reduced_rank = 0;
  int64_t count = 1;
  for (int d = 0; d < args.x.rank(); ++d) {
    const int64_t size = args.x.size(d);
    if (size == args.out.size(d)) {
      kept[static_cast<size_t>(kept_rank++)] = {size, args.x.stride(d), args.out.stride(d), 0};
    } else {
      reduced[static_cast<size_t>(reduced_rank++)] = {size, args.x.stride(d), 0, 0};
      count *= size;
    }
  }
  if (reduced_rank == 0) reduced[static_cast<size_t>(reduced_rank++)] = {1, 0, 0, 0};
  const Axis inner = reduced[static_cast<size_t>(reduced_rank - 1)];
  const int64_t grain = std::max<int64_t>(1, 32768 / count);
  parallel_for(args.out.numel(), grain, [&](int64_t begin, int64_t end) {
    AxisCursor at(kept.data(), kept_rank, begin);
    for (int64_t o = begin; o < end; ++o, at.next()) {
      const T* x = args.x.data + at.x;
      V best = convert<V>(*x);
      int64_t position = 0;
      AxisCursor row(reduced.data(), reduced_rank - 1, 0);
      for (int64_t first = 0; first < count && best == best; first += inner.size, row.next()) {
        const T* values = x + row.x;
        for (int64_t i = 0; i < inner.size; ++i) {
          const V v = convert<V>(values[i * inner.x]);
          if ((IsMax ? v > best : v < best) || v != v) {
            best = v;
            position = first + i;
            if (v != v) break;
          }
        }
      }
      args.out.data[at.out] = position;
    }
  });
}
GABLE_CPU_KERNEL_ALL(ArgMaxArgs)
GABLE_CPU_KERNEL_ALL(ArgMinArgs)

}  // namespace gable
