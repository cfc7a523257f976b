// SPDX-License-Identifier: Apache-2.0
// ProgressBar.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdarg>

#include "gable/train/callbacks.hpp"
#include "gable/train/trainer.hpp"

namespace gable::train {

namespace {

[[gnu::format(printf, 1, 2)]] std::string print(const char* format, ...) {
  std::array<char, 256> text{};
  va_list arguments;
  va_start(arguments, format);
  const int n = std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  return {text.data(), std::min(static_cast<size_t>(std::max(n, 0)), text.size() - 1)};
}

// 42 s, 3:05, 1:02:03
std::string duration(double seconds) {
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) return print("%lld s", s);
  if (s < 3600) return print("%lld:%02lld", s / 60, s % 60);
  return print("%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

ProgressBar::ProgressBar(std::FILE* out, double interval)
    : out_(out), interval_(interval), terminal_(isatty(fileno(out)) == 1) {}

void ProgressBar::on_start(TrainerBase& trainer, int64_t) {
  start_ = epoch_start_ = last_print_ = Clock::now();
  first_step_ = trainer.steps_done();
  epoch_samples_ = 0;
}

void ProgressBar::on_step(TrainerBase&, const StepEvent& e) {
  epoch_samples_ += e.samples;
  const Clock::time_point now = Clock::now();
  const double since_print = std::chrono::duration<double>(now - last_print_).count();
  if (since_print < (terminal_ ? 0.2 : interval_)) return;
  last_print_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double in_epoch = std::chrono::duration<double>(now - epoch_start_).count();
  const double per_step = elapsed / static_cast<double>(e.step - first_step_);
  const int64_t left = (e.epochs - e.epoch) * e.batches + e.batches - e.batch;
  const std::string numbers =
      print("%.0f images/s, loss %.4f, %s left", static_cast<double>(epoch_samples_) / in_epoch,
            e.loss, duration(per_step * static_cast<double>(left)).c_str());
  const auto epoch = static_cast<long long>(e.epoch), epochs = static_cast<long long>(e.epochs);
  const auto batch = static_cast<long long>(e.batch), batches = static_cast<long long>(e.batches);
  if (terminal_) {
    constexpr size_t kWidth = 20;
    const auto done = static_cast<size_t>(e.batch * static_cast<int64_t>(kWidth) / e.batches);
    const std::string bar = std::string(done, '=') + std::string(kWidth - done, ' ');
    std::fprintf(out_, "\r\033[Kepoch %lld/%lld [%s] %lld/%lld  %s", epoch, epochs, bar.c_str(),
                 batch, batches, numbers.c_str());
    drawn_ = true;
  } else {
    std::fprintf(out_, "epoch %lld/%lld, step %lld/%lld, %s\n", epoch, epochs, batch, batches,
                 numbers.c_str());
  }
  std::fflush(out_);
}

void ProgressBar::clear_line() {
  if (drawn_) std::fputs("\r\033[K", out_);
  drawn_ = false;
}

void ProgressBar::on_epoch(TrainerBase&, const EpochEvent& e) {
  clear_line();
  std::string line = print("epoch %3lld/%lld  train loss %.4f", static_cast<long long>(e.epoch),
                           static_cast<long long>(e.epochs), e.train_loss);
  if (e.test_accuracy) line += print("  test accuracy %6.2f %%", 100 * *e.test_accuracy);
  line += print("  %.1f s  (%.0f images/s)", e.seconds, e.images_per_second);
  std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  epoch_start_ = last_print_ = Clock::now();
  epoch_samples_ = 0;
}

void ProgressBar::on_end(TrainerBase& trainer, StopReason reason) {
  clear_line();
  if (reason == StopReason::stopped)
    std::fprintf(out_, "stopped after step %lld\n", static_cast<long long>(trainer.steps_done()));
  if (reason == StopReason::early) std::fprintf(out_, "stopped early: no better test accuracy\n");
  std::fflush(out_);
}

}  // namespace gable::train
