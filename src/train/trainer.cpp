// SPDX-License-Identifier: Apache-2.0
// The training loop.
#include "gable/train/trainer.hpp"

#include <algorithm>
#include <chrono>

#include "gable/ops/elementwise.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/optim/clip.hpp"
#include "gable/tensor/random.hpp"
#include "gable/train/stop.hpp"

namespace gable::train {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What the order and content of batches depend on.
std::string describe(const data::Loader& loader) {
  const data::LoaderOptions& o = loader.options();
  return concat("batch size ", o.batch_size, ", seed ", o.seed, ", shuffle ", o.shuffle,
                ", drop_last ", o.drop_last, ", ", loader.samples(), " samples");
}

}  // namespace

TrainerBase::TrainerBase(nn::AnyModule& model, optim::Optimizer& optimizer, TrainerOptions options)
    : model_(model), optimizer_(optimizer), options_(std::move(options)) {
  check<TypeError>(std::isfinite(options_.loss_scale) && options_.loss_scale > 0, "trainer",
                   "expected a loss_scale > 0, got ", options_.loss_scale);
  check<TypeError>(std::isfinite(options_.clip_norm) && options_.clip_norm >= 0, "trainer",
                   "expected a clip_norm >= 0, got ", options_.clip_norm);
  check<TypeError>(options_.loss_scale_growth >= 1, "trainer",
                   "expected a loss_scale_growth >= 1, got ", options_.loss_scale_growth);
  if (options_.loss_scale != 1) scaler_ = make_scaler(options_.loss_scale);
  default_generator().manual_seed(options_.seed);
}

amp::GradScaler TrainerBase::make_scaler(double scale) const {
  return amp::GradScaler({.init_scale = scale,
                          .growth_interval = options_.loss_scale_growth,
                          .device = options_.device});
}

void TrainerBase::add(std::shared_ptr<Callback> callback) {
  check<TypeError>(callback != nullptr, "trainer", "expected a callback, got null");
  callbacks_.push_back(std::move(callback));
}

bool TrainerBase::should_stop() const {
  return stop_.load() != StopReason::finished || StopOnSignal::requested();
}

StopReason TrainerBase::fit(const data::Loader& train, const data::Loader* test, int64_t epochs) {
  const std::string loader_text = describe(train);
  const bool resumed = at_.epoch > 0 || at_.batch > 0;
  check<Error>(!resumed || loader_text_.empty() || loader_text == loader_text_, "fit",
               "expected the training data of the checkpoint (", loader_text_, "), got ",
               loader_text);
  loader_text_ = loader_text;
  stop_.store(StopReason::finished);
  for (const auto& c : callbacks_) c->on_start(*this, epochs);
  while (at_.epoch < epochs) {
    if (!run_epoch(train, test, epochs)) {
      for (const auto& c : callbacks_) c->on_save(*this);
      return end(StopReason::stopped);
    }
    if (at_.epoch < epochs && should_stop())
      return end(stop_.load() == StopReason::early ? StopReason::early : StopReason::stopped);
  }
  return end(StopReason::finished);
}

StopReason TrainerBase::end(StopReason reason) {
  for (const auto& c : callbacks_) c->on_end(*this, reason);
  stop_.store(StopReason::finished);
  return reason;
}

// False if stopped on the way; the position says where then.
bool TrainerBase::run_epoch(const data::Loader& train, const data::Loader* test, int64_t epochs) {
  Clock::time_point start = Clock::now();
  model_.train();
  EpochEvent event{.epoch = at_.epoch + 1, .epochs = epochs};
  data::Epoch pass = train.epoch(at_.epoch, at_.batch);
  while (std::optional<data::Batch> batch = pass.next()) {
    StepEvent done = step(*batch);
    done.epochs = epochs;
    done.batches = train.batches();
    at_.seconds += seconds_since(start);
    start = Clock::now();
    for (const auto& c : callbacks_) c->on_step(*this, done);
    if (should_stop()) return false;
  }
  const auto samples = static_cast<double>(at_.samples);
  if (test != nullptr) {
    start = Clock::now();
    Evaluation result;
    if (!evaluate_into(*test, result, true)) return false;  // resumes with the evaluation
    event.test_loss = result.loss;
    event.test_accuracy = result.accuracy;
    event.test_seconds = seconds_since(start);
  }
  event.step = at_.step;
  event.skipped_steps = skipped_steps();
  event.train_loss = at_.loss_sum / samples;
  event.train_accuracy = static_cast<double>(at_.correct) / samples;
  event.lr = optimizer_.lr();
  event.seconds = at_.seconds;
  event.images_per_second = samples / at_.seconds;
  ++at_.epoch;
  at_.batch = 0;
  at_.loss_sum = 0;
  at_.correct = 0;
  at_.samples = 0;
  at_.seconds = 0;
  for (const auto& c : callbacks_) c->on_epoch(*this, event);
  for (const auto& c : callbacks_) c->on_save(*this);
  return true;
}

StepEvent TrainerBase::step(const data::Batch& batch) {
  if (options_.schedule) optimizer_.set_lr(options_.schedule(at_.step));
  const BatchResult result = run_batch(batch, true);
  check<Error>(std::isfinite(result.loss), "fit", "expected a finite loss, got ", result.loss,
               " at step ", at_.step + 1, " (epoch ", at_.epoch + 1, ", batch ", at_.batch + 1,
               "), learning rate ", optimizer_.lr());
  update(result.loss);
  const int64_t samples = batch.labels.numel();
  at_.loss_sum += result.loss * static_cast<double>(samples);
  at_.correct += result.correct;
  at_.samples += samples;
  ++at_.batch;
  ++at_.step;
  return {.epoch = at_.epoch + 1,
          .batch = at_.batch,
          .step = at_.step,
          .samples = samples,
          .loss = result.loss,
          .lr = optimizer_.lr()};
}

// Clips, changes the parameters and drops the gradients. A scaler decides on the device whether the
// step is skipped.
void TrainerBase::update(double loss) {
  const bool clips = options_.clip_norm > 0;
  bool finite = true;
  if (scaler_) {
    scaler_->unscale_(optimizer_);
    Tensor<float> factor;
    if (clips) factor = optim::clip_factor(optimizer_.parameters(), options_.clip_norm).factor;
    scaler_->step(optimizer_, factor);
    scaler_->update();
  } else {
    if (clips) finite = optim::clip_grad_norm(optimizer_.parameters(), options_.clip_norm).finite;
    if (finite) optimizer_.step();
  }
  optimizer_.zero_grad();
  check<Error>(finite, "fit", "expected finite gradients, got inf or NaN at step ", at_.step + 1,
               " (loss ", loss, ")");
}

Evaluation TrainerBase::evaluate(const data::Loader& loader) {
  Evaluation result;
  (void)evaluate_into(loader, result, false);
  return result;
}

// False if a stop was asked for on the way and `stoppable`; the result is of the batches so far
// then.
bool TrainerBase::evaluate_into(const data::Loader& loader, Evaluation& result, bool stoppable) {
  const NoGrad no_grad;
  struct RestoreMode {  // also when a batch throws
    nn::AnyModule& model;
    bool training;
    ~RestoreMode() { model.train(training); }
  } restore{model_, model_.training()};
  model_.eval();
  double loss = 0;
  int64_t correct = 0;
  data::Epoch pass = loader.epoch(0);
  while (std::optional<data::Batch> batch = pass.next()) {
    const BatchResult r = run_batch(*batch, false);
    loss += r.loss * static_cast<double>(batch->labels.numel());
    correct += r.correct;
    result.samples += batch->labels.numel();
    if (stoppable && should_stop()) break;
  }
  result.loss = loss / static_cast<double>(result.samples);
  result.accuracy = static_cast<double>(correct) / static_cast<double>(result.samples);
  return result.samples == loader.samples();
}

int64_t TrainerBase::count_correct(const Tensor<float>& logits, const Tensor<int64_t>& labels) {
  check(logits.rank() == 2 && labels.rank() == 1 && logits.size(0) == labels.size(0), "trainer",
        "expected logits (N, classes) for labels ", labels.shape(), ", got ", logits.shape());
  return sum(eq(argmax(logits, 1), labels)).item();
}

}  // namespace gable::train
