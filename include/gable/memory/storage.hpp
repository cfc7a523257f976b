// SPDX-License-Identifier: Apache-2.0
// Storage: reference-counted bytes on a device; knows its size and how often it was written.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "gable/core/device.hpp"

namespace gable {

/// A shared handle to a block of bytes. Copies share the block; the last one releases it.
class Storage {
 public:
  /// No memory; size 0.
  Storage() = default;
  /// `bytes` uninitialised bytes, 64-byte aligned, from the device's allocator.
  static Storage allocate(int64_t bytes, Device device = kCpu);
  /// Memory of the caller; `release` (may be empty) runs when the last handle goes.
  static Storage borrow(void* data, int64_t bytes, Device device,
                        std::function<void(void*)> release);

  [[nodiscard]] void* data() const { return block_ ? block_->data : nullptr; }
  [[nodiscard]] int64_t bytes() const { return block_ ? block_->bytes : 0; }
  [[nodiscard]] Device device() const { return block_ ? block_->device : kCpu; }
  [[nodiscard]] long use_count() const { return block_.use_count(); }
  /// Counts in-place writes through any view, so that saved tensors notice them.
  [[nodiscard]] uint64_t version() const { return block_ ? block_->version.load() : 0; }
  void bump_version() const {
    if (block_) block_->version.fetch_add(1);
  }
  friend bool operator==(const Storage& a, const Storage& b) { return a.block_ == b.block_; }

 private:
  struct Block {
    void* data = nullptr;
    int64_t bytes = 0;
    Device device;
    std::function<void(void*)> release;  // empty: the device's allocator owns the bytes
    std::atomic<uint64_t> version{0};
    Block(void* d, int64_t b, Device dev, std::function<void(void*)> r);
    ~Block();
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
  };
  std::shared_ptr<Block> block_;
};

}  // namespace gable
