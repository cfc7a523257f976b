// SPDX-License-Identifier: Apache-2.0
// Signal handlers that only set a flag.
#include "gable/train/stop.hpp"

#include <array>
#include <atomic>
#include <csignal>

namespace gable::train {

namespace {

std::atomic<bool> requested_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free);  // so a handler may write it

constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};
using Handler = void (*)(int);
std::array<Handler, 2> previous = {SIG_DFL, SIG_DFL};

extern "C" void gable_stop_handler(int signal) {
  requested_flag.store(true);
  std::signal(signal, SIG_DFL);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  requested_flag.store(false);
  for (size_t i = 0; i < kSignals.size(); ++i)
    previous[i] = std::signal(kSignals[i], gable_stop_handler);
}

StopOnSignal::~StopOnSignal() {
  for (size_t i = 0; i < kSignals.size(); ++i) std::signal(kSignals[i], previous[i]);
}

bool StopOnSignal::requested() noexcept { return requested_flag.load(); }

}  // namespace gable::train
