// SPDX-License-Identifier: Apache-2.0
// Scratch<T>: device memory for the length of one operator, from the stream's allocator.
#pragma once

#include <cstdint>

#include "gable/core/error.hpp"
#include "gable/memory/storage.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

/// `count` uninitialised elements, 256-byte aligned. The memory may be handed out again as soon
/// as this goes, since later work of the same stream runs after the work that used it.
template <class T>
class Scratch {
 public:
  Scratch(int64_t count, const Stream& stream) {
    int64_t bytes = 0;
    check(!__builtin_mul_overflow(count, static_cast<int64_t>(sizeof(T)), &bytes), current_op(),
          "expected fewer than 2^63 bytes of scratch, got ", count, " elements");
    storage_ = Storage::allocate(bytes, stream.device);
  }
  [[nodiscard]] T* data() const { return static_cast<T*>(storage_.data()); }

 private:
  Storage storage_;
};

}  // namespace gable::cuda
