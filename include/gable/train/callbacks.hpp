// SPDX-License-Identifier: Apache-2.0
// Ready-made callbacks: progress on a terminal, metrics files, checkpoints, early stopping.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "gable/train/callback.hpp"

namespace gable::train {

/// On a terminal a bar that is redrawn in place, with images/s, loss and time left; elsewhere a
/// plain line every `interval` seconds. Both end each epoch with one line.
class ProgressBar : public Callback {
 public:
  explicit ProgressBar(std::FILE* out = stdout, double interval = 10);
  void on_start(TrainerBase& trainer, int64_t epochs) override;
  void on_step(TrainerBase& trainer, const StepEvent& event) override;
  void on_epoch(TrainerBase& trainer, const EpochEvent& event) override;
  void on_end(TrainerBase& trainer, StopReason reason) override;

 private:
  using Clock = std::chrono::steady_clock;
  void clear_line();

  std::FILE* out_;
  double interval_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point start_;  // of this fit()
  Clock::time_point epoch_start_;
  Clock::time_point last_print_;
  int64_t first_step_ = 0;
  int64_t epoch_samples_ = 0;
};

/// Writes `folder`/metrics.jsonl (one JSON object an epoch: epoch, step, train_loss,
/// train_accuracy, test_loss, test_accuracy, lr, seconds, test_seconds, images_per_second,
/// skipped_steps; accuracies as fractions) and the same as metrics.csv. Both are replaced
/// atomically after each epoch. A new run starts empty; a resumed one keeps the epochs that its
/// checkpoint knows.
class MetricsWriter : public Callback {
 public:
  explicit MetricsWriter(const std::filesystem::path& folder);
  void on_start(TrainerBase& trainer, int64_t epochs) override;
  void on_epoch(TrainerBase& trainer, const EpochEvent& event) override;

 private:
  void write() const;

  std::filesystem::path folder_;
  std::vector<std::string> json_;  // lines
  std::vector<std::string> csv_;
};

/// Saves the trainer to `path` after every epoch and when a run is stopped, atomically.
class Checkpoint : public Callback {
 public:
  explicit Checkpoint(std::filesystem::path path) : path_(std::move(path)) {}
  void on_save(TrainerBase& trainer) override;

 private:
  std::filesystem::path path_;
};

/// Ends the run when the test accuracy has not risen by more than `min_delta` for `patience`
/// epochs. Epochs without evaluation do not count.
class EarlyStop : public Callback {
 public:
  explicit EarlyStop(int64_t patience, double min_delta = 0);
  void on_epoch(TrainerBase& trainer, const EpochEvent& event) override;
  void save(io::Metadata& metadata) const override;
  void load(const io::Metadata& metadata) override;

 private:
  int64_t patience_;
  double min_delta_;
  double best_ = -1;
  int64_t waited_ = 0;
};

/// Draws `folder`/metrics.csv as `folder`/metrics.png with gnuplot: loss and accuracy by epoch.
/// Returns an empty text, or one line that says why there is no picture.
[[nodiscard]] std::string plot_metrics(const std::filesystem::path& folder);

}  // namespace gable::train
