// SPDX-License-Identifier: Apache-2.0
// Many<Item>: one launch over many tensors, whose addresses travel as kernel arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gable/ops/optimizer.hpp"
#include "runtime/launch.hpp"

namespace gable::cuda {

/// Items with the block that each begins at; fits into 4 KiB of arguments beside a few scalars.
template <class Item>
struct Many {
  static constexpr int kCapacity = static_cast<int>(3600 / (sizeof(Item) + sizeof(uint32_t)));
  Item items[kCapacity];
  uint32_t ends[kCapacity];  // first block after each item's
  int count;

  __device__ __forceinline__ int item_of(uint32_t block) const {
    int low = 0;
    int high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (block < ends[middle])
        high = middle;
      else
        low = middle + 1;
    }
    return low;
  }
  __device__ __forceinline__ uint32_t first_block(int item) const {
    return item == 0 ? 0 : ends[item - 1];
  }
};

/// Calls launch_one(grid, many) as often as the items need; blocks[i] is the number of blocks that
/// item i wants.
template <class Item, class F>
void launch_many(const std::vector<Item>& items, const std::vector<int64_t>& blocks, int threads,
                 F&& launch_one) {
  for (size_t begin = 0; begin < items.size();) {
    Many<Item> many = {};
    int64_t total = 0;
    size_t next = begin;
    for (; next < items.size() && many.count < Many<Item>::kCapacity; ++next) {
      total += blocks[next];
      many.items[many.count] = items[next];
      many.ends[many.count++] = static_cast<uint32_t>(total);
    }
    launch_one(Grid{blocks_for(total, 1), static_cast<unsigned>(threads)}, many);
    begin = next;
  }
}

/// UpdateControl on the device.
struct UpdateScalars {
  const float* scale;
  const float* found_inf;
  const int64_t* skipped;

  explicit UpdateScalars(const UpdateControl& c)
      : scale(c.scale.data), found_inf(c.found_inf.data), skipped(c.skipped.data) {}
  __device__ __forceinline__ bool is_skipped() const {
    return found_inf != nullptr && *found_inf != 0;
  }
  __device__ __forceinline__ float scale_factor() const { return scale != nullptr ? *scale : 1.0F; }
  __device__ __forceinline__ int64_t effective_step(int64_t steps) const {
    return skipped != nullptr ? steps - *skipped : steps;
  }
};

}  // namespace gable::cuda
