// SPDX-License-Identifier: Apache-2.0
// Caching CPU allocator, Storage, copy counters.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "gable/core/error.hpp"
#include "gable/memory/allocator.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/memory/storage.hpp"

namespace gable {

namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;

#ifdef __SANITIZE_ADDRESS__
constexpr bool kCaching = false;  // exact, uncached blocks, so that the sanitizer sees overruns
#else
constexpr bool kCaching = true;
#endif

// Size classes: powers of two in eighths, so that at most 12.5 % of a block is unused.
int64_t size_class(int64_t bytes) {
  if (!kCaching) return bytes;
  if (bytes <= 512) return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const int64_t eighth = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes - 1))) / 8;
  return (bytes + eighth - 1) / eighth * eighth;
}

class CachingCpuAllocator final : public Allocator {
 public:
  void* allocate(int64_t bytes) override {
    if (bytes == 0) return nullptr;
    check<Error>(bytes > 0 && bytes <= (int64_t{1} << 46), "allocate",
                 "expected a size below 64 TiB, got ", bytes, " bytes");
    const int64_t rounded = size_class(bytes);
    {
      const std::lock_guard lock(mutex_);
      ++stats_.allocations;
      if (auto it = free_.find(rounded); it != free_.end() && !it->second.empty()) {
        void* data = it->second.back();
        it->second.pop_back();
        stats_.bytes_cached -= rounded;
        hand_out(rounded);
        return data;
      }
    }
    void* data = request(rounded);
    if (data == nullptr) {  // give the cache back before giving up
      empty_cache();
      data = request(rounded);
    }
    check<Error>(data != nullptr, "allocate", "expected ", bytes,
                 " bytes from the system, got none: out of memory");
    const std::lock_guard lock(mutex_);
    ++stats_.system_requests;
    hand_out(rounded);
    return data;
  }

  void deallocate(void* data, int64_t bytes) noexcept override {
    if (data == nullptr) return;
    const int64_t rounded = size_class(bytes);
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= rounded;
    if (!kCaching) {
      std::free(data);
      return;
    }
    try {
      free_[rounded].push_back(data);
      stats_.bytes_cached += rounded;
    } catch (...) {
      std::free(data);
    }
  }

  AllocatorStats stats() const override {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() override {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.bytes_in_use;
  }

  void empty_cache() override {
    const std::lock_guard lock(mutex_);
    for (auto& [size, blocks] : free_) {
      for (void* data : blocks) std::free(data);
      blocks.clear();
    }
    stats_.bytes_cached = 0;
  }

 private:
  static void* request(int64_t rounded) {
    const bool huge = kCaching && rounded >= kHugePage;
    const int64_t alignment = huge ? kHugePage : kAlignment;
    void* data = nullptr;
    const int64_t size = huge ? (rounded + alignment - 1) / alignment * alignment : rounded;
    if (posix_memalign(&data, static_cast<size_t>(alignment), static_cast<size_t>(size)) != 0)
      return nullptr;
    if (huge) madvise(data, static_cast<size_t>(size), MADV_HUGEPAGE);
    return data;
  }

  void hand_out(int64_t rounded) {
    stats_.bytes_in_use += rounded;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.bytes_in_use);
  }

  mutable std::mutex mutex_;
  std::unordered_map<int64_t, std::vector<void*>> free_;
  AllocatorStats stats_;
};

std::atomic<int64_t> hidden_copies{0};
std::atomic<int64_t> layout_conversions{0};
std::atomic<int64_t> autocasts{0};

}  // namespace

Allocator& cpu_allocator() {
  // Never destroyed: static tensors may give memory back after other statics are gone.
  static auto* allocator = new CachingCpuAllocator;
  return *allocator;
}

Storage::Block::Block(void* d, int64_t b, Device dev, std::function<void(void*)> r)
    : data(d), bytes(b), device(dev), release(std::move(r)) {}

Storage::Block::~Block() {
  if (release)
    release(data);
  else
    allocator_of(device).deallocate(data, bytes);
}

Storage Storage::allocate(int64_t bytes, Device device) {
  Storage storage;
  Allocator& allocator = allocator_of(device);
  void* data = allocator.allocate(bytes);
  try {
    storage.block_ = std::make_shared<Block>(data, bytes, device, nullptr);
  } catch (...) {
    allocator.deallocate(data, bytes);
    throw;
  }
  return storage;
}

Storage Storage::borrow(void* data, int64_t bytes, Device device,
                        std::function<void(void*)> release) {
  Storage storage;
  if (!release) release = [](void*) {};
  storage.block_ = std::make_shared<Block>(data, bytes, device, std::move(release));
  return storage;
}

CopyStats copy_stats() {
  return {hidden_copies.load(), layout_conversions.load(), autocasts.load()};
}

void reset_copy_stats() {
  hidden_copies = 0;
  layout_conversions = 0;
  autocasts = 0;
}

void detail::count_hidden_copy(bool layout_conversion) {
  ++hidden_copies;
  if (layout_conversion) ++layout_conversions;
}

void detail::count_autocast() { ++autocasts; }

}  // namespace gable
