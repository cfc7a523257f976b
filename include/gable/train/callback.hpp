// SPDX-License-Identifier: Apache-2.0
// What happens in a training run, told to callbacks.
#pragma once

#include <cstdint>
#include <optional>

#include "gable/io/safetensors.hpp"

namespace gable::train {

class TrainerBase;

/// One update that was done.
struct StepEvent {
  int64_t epoch = 1;    ///< counted from 1
  int64_t epochs = 1;   ///< of the whole run
  int64_t batch = 1;    ///< batches done in this epoch
  int64_t batches = 1;  ///< in an epoch
  int64_t step = 1;     ///< updates done in the whole run
  int64_t samples = 0;  ///< in this batch
  double loss = 0;      ///< of this batch, before the update
  double lr = 0;
};

/// One epoch that is complete.
struct EpochEvent {
  int64_t epoch = 1;  ///< counted from 1
  int64_t epochs = 1;
  int64_t step = 0;                      ///< updates done in the whole run
  int64_t skipped_steps = 0;             ///< of these, skipped under a loss scale
  double train_loss = 0;                 ///< mean over the epoch's samples, each before its update
  double train_accuracy = 0;             ///< fraction, likewise
  std::optional<double> test_loss = {};  ///< without a test loader: none
  std::optional<double> test_accuracy = {};  ///< fraction
  double lr = 0;                             ///< of the last update
  double seconds = 0;                        ///< training, without the evaluation
  double test_seconds = 0;
  double images_per_second = 0;  ///< training
};

enum class StopReason : uint8_t {
  finished,  ///< all epochs are done
  stopped,   ///< by a signal or request_stop()
  early,     ///< by a callback that saw no use in going on
};

/// Called by a Trainer on its thread. What a callback throws ends the run.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Before the first step of fit(), also of a resumed run.
  virtual void on_start(TrainerBase&, int64_t /*epochs*/) {}
  virtual void on_step(TrainerBase&, const StepEvent&) {}
  virtual void on_epoch(TrainerBase&, const EpochEvent&) {}
  /// The moment to save: after every callback's on_epoch, and when a run stops in mid-epoch.
  virtual void on_save(TrainerBase&) {}
  virtual void on_end(TrainerBase&, StopReason) {}

  /// State of the callback's own, kept in checkpoints under keys that it chooses.
  virtual void save(io::Metadata&) const {}
  virtual void load(const io::Metadata&) {}

 protected:
  Callback() = default;
  Callback(const Callback&) = default;
  Callback(Callback&&) = default;
  Callback& operator=(const Callback&) = default;
  Callback& operator=(Callback&&) = default;
};

}  // namespace gable::train
