// SPDX-License-Identifier: Apache-2.0
// Stable sorting of pairs.
#include "radix_sort.hpp"

#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "runtime/context.hpp"
#include "runtime/scratch.hpp"

namespace gable::cuda {

void sort_pairs(const uint64_t* keys, uint64_t* sorted_keys, const int64_t* values,
                int64_t* sorted_values, int64_t count, int bits, const Stream& stream) {
  size_t bytes = 0;
  auto run = [&](void* scratch) {
    GABLE_CUDA_CHECK(cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, sorted_keys, values,
                                                     sorted_values, count, 0, std::max(bits, 1),
                                                     native(stream)));
  };
  run(nullptr);
  // CUB asks for a size by a null pointer, so there is always a byte.
  const Scratch<char> scratch(static_cast<int64_t>(std::max<size_t>(bytes, 1)), stream);
  run(scratch.data());
}

}  // namespace gable::cuda
