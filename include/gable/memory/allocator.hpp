// SPDX-License-Identifier: Apache-2.0
// Allocator interface, the caching CPU allocator and its statistics.
#pragma once

#include <cstdint>

#include "gable/core/device.hpp"

namespace gable {

/// Counters of one allocator, in bytes and calls.
struct AllocatorStats {
  int64_t bytes_in_use = 0;     ///< handed out now
  int64_t peak_bytes = 0;       ///< greatest bytes_in_use since reset_peak()
  int64_t bytes_cached = 0;     ///< kept for reuse
  int64_t allocations = 0;      ///< calls of allocate()
  int64_t system_requests = 0;  ///< of these, the ones that the system had to serve
};

/// Source of 64-byte-aligned memory on one device. Thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// At least `bytes` bytes, uninitialised; null for 0. Throws Error when memory runs out.
  virtual void* allocate(int64_t bytes) = 0;
  /// Takes back what allocate(bytes) gave.
  virtual void deallocate(void* data, int64_t bytes) noexcept = 0;
  [[nodiscard]] virtual AllocatorStats stats() const = 0;
  virtual void reset_peak() = 0;
  /// Returns cached blocks to the system.
  virtual void empty_cache() = 0;
};

/// The CPU's allocator: blocks of a size class are kept and handed out again, so that the second
/// step of a training loop asks the system for nothing; blocks of 2 MiB and more stand on huge
/// pages where the kernel offers them (first-touch page faults cost more than a ReLU itself).
[[nodiscard]] Allocator& cpu_allocator();

/// The allocator of a device. Throws DeviceError if the device is absent.
[[nodiscard]] Allocator& allocator_of(Device device);

}  // namespace gable
