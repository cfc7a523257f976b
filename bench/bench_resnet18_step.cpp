// SPDX-License-Identifier: Apache-2.0
// One ResNet-18 (CIFAR stem) training step: median time, operators by time, memory, as one line of
// JSON. The peer is bench/peers/torch_resnet18_step.py; compare_cpu_step.py runs both.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "gable/gable.hpp"
#include "gable/models/resnet.hpp"

namespace {

using namespace gable;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Time a kernel name, for --profile.
class KernelTimes : public KernelObserver {
 public:
  void begin(const char* kernel, Device, const Cost& cost) override {
    name_ = kernel;
    flops_ = static_cast<double>(cost.total_flops());
    start_ = Clock::now();
  }
  void end() override {
    Row& row = rows_[name_];
    row.seconds += seconds_since(start_);
    row.flops += flops_;
    ++row.calls;
  }
  void print(int steps) const {
    std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::fprintf(stderr, "%-28s %8s %10s %10s\n", "kernel", "calls", "ms/step", "GFLOP/s");
    for (const auto& [kernel, row] : sorted)
      std::fprintf(stderr, "%-28s %8d %10.2f %10.1f\n", kernel.c_str(), row.calls / steps,
                   row.seconds / steps * 1e3, row.flops / row.seconds * 1e-9);
  }

 private:
  struct Row {
    double seconds = 0;
    double flops = 0;
    int calls = 0;
  };
  std::map<std::string, Row> rows_;
  std::string name_;
  double flops_ = 0;
  Clock::time_point start_;
};

struct Options {
  int64_t batch = 128;
  int64_t width = 64;
  int threads = 2;
  int steps = 5;
  bool profile = false;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t equals = argument.find('=');
    const std::string key = argument.substr(0, equals);
    const int value = equals == std::string::npos ? 0 : std::atoi(argument.c_str() + equals + 1);
    if (key == "--batch" && value > 0) {
      o.batch = value;
    } else if (key == "--width" && value > 0) {
      o.width = value;
    } else if (key == "--threads" && value > 0) {
      o.threads = value;
    } else if (key == "--steps" && value > 0) {
      o.steps = value;
    } else if (argument == "--profile") {
      o.profile = true;
    } else {
      std::fprintf(stderr,
                   "usage: bench_resnet18_step [--batch=N] [--width=N] [--threads=N] [--steps=N] "
                   "[--profile]\n");
      std::exit(argument == "--help" ? 0 : 2);
    }
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const Options o = parse(argc, argv);
  set_num_threads(o.threads);
  models::ResNet18<float> model({.num_classes = 10, .width = o.width, .stem = models::Stem::cifar});
  optim::SGD optimizer(model.parameters(),
                       {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  const auto x = randn<float>({o.batch, 3, 32, 32}, 0, 1, {.format = MemoryFormat::channels_last});
  const auto y = randint<int64_t>(0, 10, {o.batch});
  auto step = [&] {
    optimizer.zero_grad();
    cross_entropy(model(x), y).backward();
    optimizer.step();
  };
  step();  // fills the allocator's cache
  const int64_t requests = cpu_allocator().stats().system_requests;
  std::vector<double> times;
  for (int i = 0; i < o.steps; ++i) {
    const Clock::time_point start = Clock::now();
    step();
    times.push_back(seconds_since(start));
  }
  std::sort(times.begin(), times.end());
  if (o.profile) {
    KernelTimes kernels;
    const ObserveKernels observe(kernels);
    for (int i = 0; i < o.steps; ++i) step();
    kernels.print(o.steps);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"library\": \"gable %d.%d.%d\", \"median_s\": %.4f, \"min_s\": %.4f, \"max_s\": %.4f, "
      "\"batch\": %lld, \"width\": %lld, \"threads\": %d, \"steps\": %d, "
      "\"new_system_allocations\": %lld, \"tensor_peak_mib\": %.0f, \"peak_rss_mib\": %.0f}\n",
      GABLE_VERSION_MAJOR, GABLE_VERSION_MINOR, GABLE_VERSION_PATCH, times[times.size() / 2],
      times.front(), times.back(), static_cast<long long>(o.batch), static_cast<long long>(o.width),
      o.threads, o.steps,
      static_cast<long long>(cpu_allocator().stats().system_requests - requests),
      static_cast<double>(cpu_allocator().stats().peak_bytes) / 1048576.0,
      static_cast<double>(usage.ru_maxrss) / 1024.0);
  return 0;
}
