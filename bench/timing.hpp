// SPDX-License-Identifier: Apache-2.0
// How benchmarks time work on a device: by the wall clock on the CPU; on CUDA between two events,
// with the L2 cache overwritten before, and no rate above what the device was measured to do.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <functional>
#include <string>

#include "gable/memory/event.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/tensor/random.hpp"

namespace gable::bench {

/// Milliseconds of `work` on a CUDA device, the cache cold.
inline double device_milliseconds(Device device, const std::function<void()>& work) {
  static const Tensor<float> flush = zeros<float>({int64_t{1} << 26}, {.device = device});
  static cuda::Event start(device);
  static cuda::Event stop(device);
  flush.fill_(0);
  start.record();
  work();
  stop.record();
  stop.synchronize();
  return cuda::Event::milliseconds(start, stop);
}

/// Rates that no work may exceed, measured once.
struct Roofs {
  double gigabytes = 0;     ///< a second, of a large copy; bytes read plus bytes written
  double matrix_flops = 0;  ///< GFLOP a second, of a large bfloat16 product

  explicit Roofs(Device device) {
    const auto x = ones<float>({int64_t{1} << 28}, {.device = device});
    const auto y = empty_like(x);
    const auto a = randn<bfloat16>({8192, 8192}, 0, 1, {.device = device});
    const auto c = empty_like(a);
    double copy = 1e9;
    double product = 1e9;
    for (int i = 0; i < 10; ++i) {
      copy = std::min(copy, device_milliseconds(device, [&] { y.copy_(x); }));
      product = std::min(product, device_milliseconds(device, [&] { matmul_out(c, a, a.t()); }));
    }
    gigabytes = 2e-6 * static_cast<double>(x.numel() * 4) / copy;
    matrix_flops = 2e-6 * 8192.0 * 8192.0 * 8192.0 / product;
  }
  static const Roofs& of(Device device) {
    static const Roofs roofs(device);
    return roofs;
  }
};

/// Runs the benchmark's loop over `work` and sets its counters. `bytes` are compulsory ones.
inline void time_work(benchmark::State& state, Device device, const std::function<void()>& work,
                      int64_t bytes, int64_t flops) {
  using benchmark::Counter;
  if (device == kCpu) {
    for ([[maybe_unused]] const auto& unused : state) work();
    state.counters["GB/s"] =
        Counter(1e-9 * static_cast<double>(bytes), Counter::kIsIterationInvariantRate);
    state.counters["GFLOP/s"] =
        Counter(1e-9 * static_cast<double>(flops), Counter::kIsIterationInvariantRate);
    return;
  }
  const Roofs& roofs = Roofs::of(device);
  work();  // engines are chosen, memory is taken
  double total = 0;
  int64_t runs = 0;
  for ([[maybe_unused]] const auto& unused : state) {
    const double seconds = 1e-3 * device_milliseconds(device, work);
    state.SetIterationTime(seconds);
    total += seconds;
    ++runs;
  }
  const double each = total / static_cast<double>(runs);
  const double gigabytes = 1e-9 * static_cast<double>(bytes) / each;
  const double gigaflops = 1e-9 * static_cast<double>(flops) / each;
  // Some of a small working set stays in the cache between its own kernels, hence the tenth.
  if (gigabytes > 1.1 * roofs.gigabytes || gigaflops > 1.1 * roofs.matrix_flops) {
    state.SkipWithError(concat("measured ", gigabytes, " GB/s and ", gigaflops,
                               " GFLOP/s, above the roofs of ", roofs.gigabytes, " and ",
                               roofs.matrix_flops, ": a measurement error")
                            .c_str());
    return;
  }
  state.counters["GB/s"] = gigabytes;
  state.counters["GFLOP/s"] = gigaflops;
  state.counters["of_copy"] = gigabytes / roofs.gigabytes;
}

/// Timing settings of a benchmark on a device.
template <class Benchmark>
void configure(Benchmark* b, Device device) {
  if (device == kCpu)
    b->UseRealTime();
  else
    b->UseManualTime();
}

}  // namespace gable::bench
