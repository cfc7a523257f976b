// SPDX-License-Identifier: Apache-2.0
// Philox draws. Built with -ffp-contract=off, so that CUDA can repeat them bit for bit.
#include <algorithm>
#include <numeric>
#include <vector>

#include "gable/core/philox.hpp"
#include "gable/tensor/random_draw.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"

namespace gable {

template <class T>
static void kernel(const RandomArgs<T>& a) {
  const int64_t n = a.out.numel();
  parallel_for((n + 3) / 4, kElementwiseGrain / 16, [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const auto bits = philox(a.seed, a.offset + static_cast<uint64_t>(block));
      const auto normal =
          a.distribution == Distribution::normal ? detail::normals(bits) : std::array<float, 4>{};
      for (int64_t lane = 0; lane < std::min<int64_t>(4, n - block * 4); ++lane) {
        const auto l = static_cast<size_t>(lane);
        a.out.data[block * 4 + lane] = draw_element(a, bits[l], normal[l]);
      }
    }
  });
}
GABLE_CPU_KERNEL_ALL(RandomArgs)

// A stable sort by 64-bit random keys: the same order on any device that sorts stably.
static void kernel(const PermutationArgs& a) {
  const auto n = static_cast<size_t>(a.out.numel());
  std::vector<uint64_t> keys(n);
  for (size_t i = 0; i < n; ++i) {
    const auto bits = philox(a.seed, a.offset + i / 2);
    const size_t lane = (i % 2) * 2;
    keys[i] = (uint64_t{bits[lane + 1]} << 32) | bits[lane];
  }
  std::iota(a.out.data, a.out.data + n, int64_t{0});
  std::stable_sort(a.out.data, a.out.data + n, [&](int64_t x, int64_t y) {
    return keys[static_cast<size_t>(x)] < keys[static_cast<size_t>(y)];
  });
}
GABLE_CPU_KERNEL(PermutationArgs)

}  // namespace gable
