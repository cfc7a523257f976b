// SPDX-License-Identifier: Apache-2.0
// Scratch memory of CPU kernels, from the caching allocator: nothing new from the system in the
// second step of a loop.
#pragma once

#include <cstdint>

#include "gable/memory/allocator.hpp"

namespace gable::cpu {

/// Uninitialised, 64-byte aligned.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : bytes_(count * static_cast<int64_t>(sizeof(T))),
        data_(static_cast<T*>(cpu_allocator().allocate(bytes_))) {}
  ~Scratch() { cpu_allocator().deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }

 private:
  int64_t bytes_;
  T* data_;
};

}  // namespace gable::cpu
