// SPDX-License-Identifier: Apache-2.0
// Events: order between streams, and time on a device.
#pragma once

#include "gable/core/device.hpp"

namespace gable::cuda {

/// A point in a stream's work, with its time.
class Event {
 public:
  /// Throws DeviceError.
  explicit Event(Device device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  /// Marks what is queued on the thread's current stream of the device now.
  void record();
  /// Waits until all work before the mark is done.
  void synchronize() const;
  /// Makes all later work of `stream` wait for the mark.
  void block(const Stream& stream) const;
  /// Device time between two marks that have been reached.
  [[nodiscard]] static double milliseconds(const Event& start, const Event& stop);

 private:
  Device device_;
  void* native_ = nullptr;
};

}  // namespace gable::cuda
