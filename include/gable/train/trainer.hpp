// SPDX-License-Identifier: Apache-2.0
// Trainer<T>: the training loop with evaluation, callbacks, checkpoints and exact resume.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gable/amp/grad_scaler.hpp"
#include "gable/data/loader.hpp"
#include "gable/nn/module.hpp"
#include "gable/ops/cast.hpp"
#include "gable/optim/optimizer.hpp"
#include "gable/optim/schedule.hpp"
#include "gable/train/callback.hpp"

namespace gable::train {

struct TrainerOptions {
  /// Learning rate by step; empty leaves the optimizer's own.
  optim::Schedule schedule = {};
  /// Seeds default_generator() (dropout) when the trainer is made.
  uint64_t seed = 0;
  /// Clips the norm of all gradients together; 0 does not.
  double clip_norm = 0;
  /// Where an amp::GradScaler begins, so that gradients of half do not underflow: steps whose
  /// gradients are not finite are skipped and halve the scale. 1: no scaler.
  double loss_scale = 1;
  /// Steps in a row with finite gradients that double the scale.
  int64_t loss_scale_growth = 2000;
  Device device = kCpu;
  /// Kept in every checkpoint beside the trainer's own entries ("gable.*").
  io::Metadata metadata = {};
};

struct Evaluation {
  double loss = 0;      ///< mean over samples
  double accuracy = 0;  ///< fraction of samples whose greatest logit is the label's
  int64_t samples = 0;
};

/// The part of Trainer<T> that does not depend on T.
class TrainerBase {
 public:
  virtual ~TrainerBase() = default;
  TrainerBase(const TrainerBase&) = delete;
  TrainerBase& operator=(const TrainerBase&) = delete;

  /// Callbacks run in the order in which they were added.
  void add(std::shared_ptr<Callback> callback);
  template <class C, class... Args>
  C& add(Args&&... args) {
    auto callback = std::make_shared<C>(std::forward<Args>(args)...);
    C& reference = *callback;
    add(std::shared_ptr<Callback>(std::move(callback)));
    return reference;
  }

  /// Trains until `epochs` epochs of the whole run are done, from the start or from where a loaded
  /// checkpoint was, and evaluates on `test` (may be null) after each. Throws Error, naming the
  /// step, for a loss that is not finite; parameters are as before that step then.
  StopReason fit(const data::Loader& train, const data::Loader* test, int64_t epochs);
  StopReason fit(const data::Loader& train, const data::Loader& test, int64_t epochs) {
    return fit(train, &test, epochs);
  }
  /// Loss and top-1 accuracy over the whole loader, in evaluation mode and without recording. The
  /// mode is restored. Callbacks may call it.
  [[nodiscard]] Evaluation evaluate(const data::Loader& loader);
  /// Ends fit() after the current step. May be called from callbacks and other threads.
  void request_stop(StopReason reason = StopReason::stopped) { stop_.store(reason); }

  /// Everything that the run's future depends on, in one safetensors file, written atomically:
  /// model ("model.*"), optimizer ("optimizer.*") and loss scaler ("scaler.*"), position, random
  /// numbers, sums of the unfinished epoch, callbacks.
  void save_checkpoint(const std::filesystem::path& path) const;
  /// Continues bit for bit where save_checkpoint was called, given equal data, options and build.
  /// Add callbacks before. Throws FormatError or FileError for a bad file and Error for one of
  /// another model or optimizer; nothing is changed then. Without a scaler's state, as in older
  /// files and of runs that did not scale, a scaler begins anew at the file's scale, if it has one,
  /// or at the options'. A trainer that does not scale leaves such a state aside.
  void load_checkpoint(const std::filesystem::path& path);

  /// Epochs that are complete.
  [[nodiscard]] int64_t epochs_done() const { return at_.epoch; }
  /// Updates done (skipped ones count).
  [[nodiscard]] int64_t steps_done() const { return at_.step; }
  /// Updates skipped for gradients that were not finite under a loss scale. Waits for the device.
  [[nodiscard]] int64_t skipped_steps() const {
    return at_.skipped + (scaler_ ? scaler_->steps_skipped() : 0);
  }
  /// Null without loss scaling.
  [[nodiscard]] const amp::GradScaler* scaler() const { return scaler_ ? &*scaler_ : nullptr; }
  [[nodiscard]] nn::AnyModule& model() { return model_; }
  [[nodiscard]] optim::Optimizer& optimizer() { return optimizer_; }
  [[nodiscard]] const TrainerOptions& options() const { return options_; }

 protected:
  TrainerBase(nn::AnyModule& model, optim::Optimizer& optimizer, TrainerOptions options);

  struct BatchResult {
    double loss = 0;
    int64_t correct = 0;
  };
  /// Forward, and if `train` and the loss is finite, backward().
  virtual BatchResult run_batch(const data::Batch& batch, bool train) = 0;
  /// Of the loss, times the loss scale.
  template <FloatElement C>
  void backward(const Variable<C>& loss) const {
    (scaler_ ? scaler_->scale(loss) : loss).backward();
  }
  /// Rows of `logits` (N, classes) whose greatest value stands at the label.
  [[nodiscard]] static int64_t count_correct(const Tensor<float>& logits,
                                             const Tensor<int64_t>& labels);

 private:
  // Where a run is; all of it is in checkpoints.
  struct Position {
    int64_t epoch = 0;  // complete epochs
    int64_t batch = 0;  // batches done of the next
    int64_t step = 0;
    int64_t skipped = 0;  // before the scaler's own count
    double loss_sum = 0;  // of the unfinished epoch, over samples
    int64_t correct = 0;
    int64_t samples = 0;
    double seconds = 0;
  };

  [[nodiscard]] amp::GradScaler make_scaler(double scale) const;
  StepEvent step(const data::Batch& batch);
  void update(double loss);
  [[nodiscard]] bool should_stop() const;
  bool run_epoch(const data::Loader& train, const data::Loader* test, int64_t epochs);
  StopReason end(StopReason reason);
  bool evaluate_into(const data::Loader& loader, Evaluation& result, bool stoppable);

  nn::AnyModule& model_;
  optim::Optimizer& optimizer_;
  TrainerOptions options_;
  std::vector<std::shared_ptr<Callback>> callbacks_;
  Position at_;
  std::optional<amp::GradScaler> scaler_;
  std::string loader_text_;  // settings of the training data that a checkpoint was made with
  std::atomic<StopReason> stop_{StopReason::finished};
};

/// Loads the weights of a checkpoint, or of a file that holds a model's state dict alone, into
/// `model`. Returns the file's metadata. Throws as load_state_dict and load_safetensors do.
io::Metadata load_model(const std::filesystem::path& path, nn::AnyModule& model);

/// Trains a classifier: images (N, C, H, W) to logits (N, classes). The model, the optimizer and
/// the loss must outlive it.
///
///     train::Trainer<float> trainer(model, optimizer, [](const auto& logits, const auto& labels) {
///       return cross_entropy(logits, labels);
///     });
///     trainer.add<train::ProgressBar>();
///     trainer.fit(train_loader, test_loader, 10);
template <FloatElement T>
class Trainer final : public TrainerBase {
 public:
  /// Logits in Compute<T> (float for 16-bit models) and labels (N) to one element.
  using Loss = std::function<Variable<Compute<T>>(const Variable<Compute<T>>& logits,
                                                  const Tensor<int64_t>& labels)>;

  Trainer(nn::Module<T>& model, optim::Optimizer& optimizer, Loss loss, TrainerOptions options = {})
      : TrainerBase(model, optimizer, std::move(options)), module_(model), loss_(std::move(loss)) {}

 private:
  BatchResult run_batch(const data::Batch& batch, bool train) override {
    using C = Compute<T>;
    const Device device = options().device;
    const Tensor<int64_t> labels = batch.labels.to(device);
    const Variable<T> images(batch.images.to(device).template to<T>());
    const Variable<C> logits = cast<C>(module_(images));
    const Variable<C> loss = loss_(logits, labels);
    BatchResult result{.loss = loss.item(),
                       .correct = count_correct(logits.value().template to<float>(), labels)};
    if (train && std::isfinite(result.loss)) backward(loss);
    return result;
  }

  nn::Module<T>& module_;
  Loss loss_;
};

}  // namespace gable::train
