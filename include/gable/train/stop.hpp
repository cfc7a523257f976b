// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a request to stop after the current step.
#pragma once

namespace gable::train {

/// While it lives, the first SIGINT or SIGTERM sets a flag that every Trainer looks at after each
/// step; the second ends the process as usual. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;

  /// True once a signal came; stays so until the next StopOnSignal is made.
  [[nodiscard]] static bool requested() noexcept;
};

}  // namespace gable::train
