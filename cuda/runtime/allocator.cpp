// SPDX-License-Identifier: Apache-2.0
// Device memory: segments from cudaMalloc, cut into blocks that are kept and handed out again.
//
// A freed block may be handed out at once to the same stream, since what is queued later runs
// later; each stream therefore has its own free blocks. Neighbouring free blocks of a segment are
// joined. Best fit by size, from sizes rounded up to classes.
#include "gable/memory/allocator.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "gable/memory/cuda.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

namespace {

constexpr int64_t kAlignment = 512;                // of every block; more than any kernel asks
constexpr int64_t kSmallLimit = int64_t{1} << 20;  // blocks up to this share small segments
constexpr int64_t kSmallSegment = int64_t{2} << 20;
constexpr int64_t kLargeSegment = int64_t{32} << 20;  // at least, so that blocks share segments
constexpr int64_t kSegmentRounding = int64_t{2} << 20;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

struct Block {
  char* data = nullptr;
  int64_t size = 0;
  int64_t bytes = 0;  // asked for
  const char* op = nullptr;
  cudaStream_t stream = nullptr;
  bool in_use = false;
  bool small = false;
  Block* before = nullptr;  // neighbours in the segment
  Block* after = nullptr;
};

struct BySize {
  bool operator()(const Block* a, const Block* b) const {
    return a->size != b->size ? a->size < b->size : a->data < b->data;
  }
};

class CudaAllocator final : public Allocator {
 public:
  explicit CudaAllocator(Device device) : device_(device) {}

  void* allocate(int64_t bytes) override {
    if (bytes == 0) return nullptr;
    check<Error>(bytes > 0 && bytes <= (int64_t{1} << 46), "allocate",
                 "expected a size below 64 TiB, got ", bytes, " bytes");
    const cudaStream_t stream = native(current_stream(device_));
    const int64_t size = round_up(bytes, kAlignment);
    const std::lock_guard lock(mutex_);
    ++stats_.allocations;
    Block* block = take(size, stream);
    if (block == nullptr) block = grow(size, bytes, stream);
    split(block, size);
    block->in_use = true;
    block->bytes = bytes;
    block->op = current_op();
    used_.emplace(block->data, block);
    stats_.bytes_in_use += block->size;
    stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.bytes_in_use);
    stats_.bytes_cached = reserved_ - stats_.bytes_in_use;
    return block->data;
  }

  void deallocate(void* data, int64_t) noexcept override {
    if (data == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto it = used_.find(data);
    if (it == used_.end()) return;
    Block* block = it->second;
    used_.erase(it);
    stats_.bytes_in_use -= block->size;
    stats_.bytes_cached = reserved_ - stats_.bytes_in_use;
    block->in_use = false;
    block = join(block);
    pool(block).insert(block);
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
    release_free_segments();
  }

  std::vector<MemoryBlock> table() const {
    const std::lock_guard lock(mutex_);
    std::vector<MemoryBlock> rows;
    for (const auto& [data, block] : used_)
      rows.push_back({block->op, block->bytes, block->size, true});
    for (const auto& [key, blocks] : free_)
      for (const Block* block : blocks) rows.push_back({block->op, 0, block->size, false});
    std::stable_sort(rows.begin(), rows.end(),
                     [](const MemoryBlock& a, const MemoryBlock& b) { return a.size > b.size; });
    return rows;
  }

 private:
  using FreeBlocks = std::set<Block*, BySize>;

  FreeBlocks& pool(const Block* block) { return free_[{block->stream, block->small}]; }

  // The smallest free block that fits, but none so large that most of it would be kept from
  // others: large blocks are only cut, never pinned by a small rest.
  Block* take(int64_t size, cudaStream_t stream) {
    FreeBlocks& blocks = free_[{stream, size <= kSmallLimit}];
    Block key;
    key.size = size;
    const auto it = blocks.lower_bound(&key);
    if (it == blocks.end()) return nullptr;
    Block* block = *it;
    blocks.erase(it);
    return block;
  }

  // A new segment as one free block.
  Block* grow(int64_t size, int64_t bytes, cudaStream_t stream) {
    const bool small = size <= kSmallLimit;
    const int64_t wanted =
        small ? kSmallSegment : round_up(std::max(size, kLargeSegment), kSegmentRounding);
    const DeviceGuard guard(device_.index);
    void* data = nullptr;
    int64_t segment = wanted;
    cudaError_t result = cudaMalloc(&data, static_cast<size_t>(segment));
    if (result != cudaSuccess) {  // give the cache back, then ask for no more than needed
      ignore_result(result);
      release_free_segments();
      segment = small ? kSmallSegment : round_up(size, kSegmentRounding);
      result = cudaMalloc(&data, static_cast<size_t>(segment));
    }
    if (result != cudaSuccess) {
      ignore_result(result);
      size_t free_bytes = 0;
      size_t total_bytes = 0;
      ignore_result(cudaMemGetInfo(&free_bytes, &total_bytes));
      fail<Error>(current_op(), "expected ", bytes, " bytes on ", device_, ", got ",
                  cudaGetErrorString(result), ": ", stats_.bytes_in_use, " bytes in use, ",
                  reserved_ - stats_.bytes_in_use, " cached, ", free_bytes, " free of ",
                  total_bytes);
    }
    ++stats_.system_requests;
    reserved_ += segment;
    auto block = std::make_unique<Block>();
    block->data = static_cast<char*>(data);
    block->size = segment;
    block->stream = stream;
    block->small = small;
    block->op = current_op();
    return blocks_.emplace(data, std::move(block)).first->second.get();
  }

  void split(Block* block, int64_t size) {
    const int64_t rest = block->size - size;
    if (rest < (block->small ? kAlignment : kSmallLimit)) return;
    auto tail = std::make_unique<Block>(*block);
    tail->data += size;
    tail->size = rest;
    tail->before = block;
    if (tail->after != nullptr) tail->after->before = tail.get();
    block->after = tail.get();
    block->size = size;
    pool(tail.get()).insert(tail.get());
    blocks_.emplace(tail->data, std::move(tail));
  }

  // Merges a free block with its free neighbours.
  Block* join(Block* block) {
    if (Block* next = block->after; next != nullptr && !next->in_use) {
      pool(next).erase(next);
      block->size += next->size;
      block->after = next->after;
      if (block->after != nullptr) block->after->before = block;
      blocks_.erase(next->data);
    }
    if (Block* previous = block->before; previous != nullptr && !previous->in_use) {
      pool(previous).erase(previous);
      previous->size += block->size;
      previous->after = block->after;
      if (previous->after != nullptr) previous->after->before = previous;
      blocks_.erase(block->data);
      return previous;
    }
    return block;
  }

  void release_free_segments() {
    const DeviceGuard guard(device_.index);
    // Streams may still work on memory that was given back in their order.
    GABLE_CUDA_CHECK(cudaDeviceSynchronize());
    for (auto& [key, blocks] : free_) {
      for (auto it = blocks.begin(); it != blocks.end();) {
        Block* block = *it;
        if (block->before != nullptr || block->after != nullptr) {
          ++it;
          continue;
        }
        it = blocks.erase(it);
        reserved_ -= block->size;
        ignore_result(cudaFree(block->data));
        blocks_.erase(block->data);
      }
    }
    stats_.bytes_cached = reserved_ - stats_.bytes_in_use;
  }

  Device device_;
  mutable std::mutex mutex_;
  std::map<std::pair<cudaStream_t, bool>, FreeBlocks> free_;
  std::unordered_map<void*, Block*> used_;
  std::unordered_map<void*, std::unique_ptr<Block>> blocks_;
  int64_t reserved_ = 0;
  AllocatorStats stats_;
};

CudaAllocator& cuda_allocator(Device device) {
  static std::mutex mutex;
  static auto* all = new std::array<CudaAllocator*, 64>{};  // never destroyed, as contexts
  const auto index = static_cast<size_t>(context(device).index);
  const std::lock_guard lock(mutex);
  CudaAllocator*& slot = (*all)[index];
  if (slot == nullptr) slot = new CudaAllocator(device);
  return *slot;
}

}  // namespace

Allocator& allocator(Device device) { return cuda_allocator(device); }

std::vector<MemoryBlock> memory_table(Device device) { return cuda_allocator(device).table(); }

Storage pinned_storage(int64_t bytes) {
  check<Error>(bytes >= 0, "pinned_storage", "expected a size >= 0, got ", bytes);
  static_cast<void>(context({DeviceType::cuda, 0}));
  void* data = nullptr;
  if (bytes > 0)
    GABLE_CUDA_CHECK(cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable));
  // cudaFreeHost waits for copies that still use the memory.
  return Storage::borrow(data, bytes, kCpu, [](void* p) { ignore_result(cudaFreeHost(p)); });
}

}  // namespace gable::cuda
