// SPDX-License-Identifier: Apache-2.0
// Observers of kernel calls: what a profiler, a cost trace or a test hangs onto every operator.
#pragma once

#include "gable/core/cost.hpp"
#include "gable/core/device.hpp"

namespace gable {

/// Called around every kernel on this thread while installed. Must not throw.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void begin(const char* kernel, Device device, const Cost& cost) = 0;
  virtual void end() = 0;
};

namespace detail {
KernelObserver*& current_observer() noexcept;  // thread-local
}

/// Installs an observer for the scope's lifetime on this thread.
class ObserveKernels {
 public:
  explicit ObserveKernels(KernelObserver& observer) : previous_(detail::current_observer()) {
    detail::current_observer() = &observer;
  }
  ~ObserveKernels() { detail::current_observer() = previous_; }
  ObserveKernels(const ObserveKernels&) = delete;
  ObserveKernels& operator=(const ObserveKernels&) = delete;

 private:
  KernelObserver* previous_;
};

}  // namespace gable
