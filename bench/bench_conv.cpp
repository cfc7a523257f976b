// SPDX-License-Identifier: Apache-2.0
// The convolutions of ResNet-18 on 32x32 images: forward, input and weight gradients.
// GABLE_SIMD=off measures im2col and Eigen in place of the packed kernels.
#include <benchmark/benchmark.h>

#include "gable/ops/conv.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

constexpr int64_t kImages = 32;
enum class Pass { forward, input_gradient, weight_gradient };

// Arguments: input channels, output channels, image size, kernel, stride.
void conv(benchmark::State& state, Pass pass) {
  const int64_t in = state.range(0);
  const int64_t out = state.range(1);
  const int64_t size = state.range(2);
  const int64_t kernel = state.range(3);
  const TensorOptions last{.format = MemoryFormat::channels_last};
  Generator random(1);
  const auto x = rand<float>({kImages, in, size, size}, -1, 1, last, random);
  const auto w = rand<float>({out, in, kernel, kernel}, -1, 1, last, random);
  const ConvOptions options{.stride = state.range(4), .padding = kernel / 2};
  const ConvGeometry g = detail::plan_conv(x.shape(), w.shape(), nullptr, options, "bench");
  const auto y = detail::run_conv(g, x, w, {});
  for (auto _ : state) {
    switch (pass) {
      case Pass::forward: benchmark::DoNotOptimize(detail::run_conv(g, x, w, {}).data()); break;
      case Pass::input_gradient:
        benchmark::DoNotOptimize(detail::run_conv_input_grad(g, y, w, {}).data());
        break;
      case Pass::weight_gradient:
        benchmark::DoNotOptimize(detail::run_conv_weight_grad(g, x, y).data());
        break;
    }
  }
  state.counters["GFLOP/s"] = benchmark::Counter(1e-9 * static_cast<double>(g.flops()),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void layers(benchmark::internal::Benchmark* b) {
  b->UseRealTime()->MeasureProcessCPUTime()->MinTime(0.05)->Repetitions(10);
  b->ReportAggregatesOnly()->Unit(benchmark::kMillisecond);
  b->Args({3, 64, 32, 3, 1});
  b->Args({64, 64, 32, 3, 1});
  b->Args({64, 128, 32, 3, 2});
  b->Args({64, 128, 32, 1, 2});
  b->Args({128, 128, 16, 3, 1});
  b->Args({128, 256, 16, 3, 2});
  b->Args({256, 256, 8, 3, 1});
  b->Args({256, 512, 8, 3, 2});
  b->Args({512, 512, 4, 3, 1});
}

BENCHMARK_CAPTURE(conv, forward, Pass::forward)->Apply(layers);
BENCHMARK_CAPTURE(conv, input_gradient, Pass::input_gradient)->Apply(layers);
BENCHMARK_CAPTURE(conv, weight_gradient, Pass::weight_gradient)->Apply(layers);

}  // namespace
}  // namespace gable

BENCHMARK_MAIN();
