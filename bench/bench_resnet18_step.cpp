// SPDX-License-Identifier: Apache-2.0
// One ResNet-18 (CIFAR stem) training step, eagerly: median time, operators by time, memory, as one
// line of JSON. The peer is bench/peers/torch_resnet18_step.py; compare_resnet18_step.py runs both.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
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

// Time a kernel name, for --profile; waits for the device after each kernel.
class KernelTimes : public KernelObserver {
 public:
  explicit KernelTimes(Device device) : device_(device) {}
  void begin(const char* kernel, Device, const Cost& cost) override {
    name_ = kernel;
    flops_ = static_cast<double>(cost.total_flops());
    bytes_ = static_cast<double>(cost.bytes());
    start_ = Clock::now();
  }
  void end() override {
    synchronize(device_);
    Row& row = rows_[name_];
    row.seconds += seconds_since(start_);
    row.flops += flops_;
    row.bytes += bytes_;
    ++row.calls;
  }
  void print(int steps) const {
    std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::fprintf(stderr, "%-28s %8s %10s %10s %8s\n", "kernel", "calls", "ms/step", "GFLOP/s",
                 "GB/s");
    for (const auto& [kernel, row] : sorted)
      std::fprintf(stderr, "%-28s %8d %10.3f %10.1f %8.1f\n", kernel.c_str(), row.calls / steps,
                   row.seconds / steps * 1e3, row.flops / row.seconds * 1e-9,
                   row.bytes / row.seconds * 1e-9);
  }

 private:
  struct Row {
    double seconds = 0;
    double flops = 0;
    double bytes = 0;
    int calls = 0;
  };
  Device device_;
  std::map<std::string, Row> rows_;
  std::string name_;
  double flops_ = 0;
  double bytes_ = 0;
  Clock::time_point start_;
};

struct Options {
  std::string device = "cpu";
  std::string dtype = "float";
  int64_t batch = 128;
  int64_t width = 64;
  int threads = 0;
  int steps = 5;
  int warmup = 1;
  bool profile = false;
};

template <class T>
void run(const Options& o) {
  using C = Compute<T>;
  const Device device = device_from_string(o.device);
  models::ResNet18<T> model({.num_classes = 10, .width = o.width, .stem = models::Stem::cifar});
  model.to(device);
  optim::SGD optimizer(model.parameters(),
                       {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  const auto x = randn<float>({o.batch, 3, 32, 32}, 0, 1,
                              {.device = device, .format = MemoryFormat::channels_last})
                     .to<T>();
  const auto y = randint<int64_t>(0, 10, {o.batch}, {.device = device});
  auto step = [&] {
    optimizer.zero_grad();
    cross_entropy(cast<C>(model(x)), y).backward();
    optimizer.step();
  };
  for (int i = 0; i < o.warmup; ++i) step();  // fills the allocator's cache, chooses engines
  synchronize(device);
  const Allocator& memory = allocator_of(device);
  const int64_t requests = memory.stats().system_requests;
  // Steps on a device overlap with the next one's launches, as in training.
  const int steps_a_sample = device == kCpu ? 1 : 10;
  std::vector<double> times;
  for (int i = 0; i < o.steps; ++i) {
    const Clock::time_point start = Clock::now();
    for (int s = 0; s < steps_a_sample; ++s) step();
    synchronize(device);
    times.push_back(seconds_since(start) / steps_a_sample);
  }
  std::sort(times.begin(), times.end());
  if (o.profile) {
    KernelTimes kernels(device);
    const ObserveKernels observe(kernels);
    for (int i = 0; i < o.steps; ++i) step();
    kernels.print(o.steps);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"library\": \"gable %d.%d.%d\", \"device\": \"%s\", \"dtype\": \"%s\", "
      "\"median_s\": %.6f, \"min_s\": %.6f, \"max_s\": %.6f, \"batch\": %lld, \"width\": %lld, "
      "\"threads\": %d, \"samples\": %d, \"new_system_allocations\": %lld, "
      "\"tensor_peak_mib\": %.0f, \"peak_rss_mib\": %.0f}\n",
      GABLE_VERSION_MAJOR, GABLE_VERSION_MINOR, GABLE_VERSION_PATCH, o.device.c_str(),
      o.dtype.c_str(), times[times.size() / 2], times.front(), times.back(),
      static_cast<long long>(o.batch), static_cast<long long>(o.width), num_threads(), o.steps,
      static_cast<long long>(memory.stats().system_requests - requests),
      static_cast<double>(memory.stats().peak_bytes) / 1048576.0,
      static_cast<double>(usage.ru_maxrss) / 1024.0);
}

}  // namespace

int main(int argc, char** argv) {
  using CLI::IsMember, CLI::Range;
  Options o;
  CLI::App app("Times eager training steps of a ResNet-18.");
  app.option_defaults()->always_capture_default();
  app.add_option("--device", o.device, "cpu, cuda or cuda:N");
  app.add_option("--dtype", o.dtype, "Of weights and activations")
      ->check(IsMember({"float", "bfloat16", "half"}));
  app.add_option("--batch", o.batch, "Images a step")->check(Range(1, 100000));
  app.add_option("--width", o.width, "Channels of the first stage")->check(Range(1, 1024));
  app.add_option("--threads", o.threads, "CPU threads, 0 for all")->check(Range(0, 1024));
  app.add_option("--steps", o.steps, "Samples; ten steps each on a device")->check(Range(1, 10000));
  app.add_option("--warmup", o.warmup, "Steps before")->check(Range(1, 10000));
  app.add_flag("--profile", o.profile, "Print kernels by time to standard error");
  CLI11_PARSE(app, argc, argv);
  try {
    if (o.threads > 0) set_num_threads(o.threads);
    if (o.dtype == "bfloat16")
      run<bfloat16>(o);
    else if (o.dtype == "half")
      run<half>(o);
    else
      run<float>(o);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_resnet18_step: %s\n", e.what());
    return 1;
  }
  return 0;
}
