// SPDX-License-Identifier: Apache-2.0
// Matrix products. GABLE_SIMD=off measures Eigen in place of the packed kernels.
//   bench_matmul --benchmark_out=matmul.json --benchmark_out_format=json
#include <benchmark/benchmark.h>

#include "gable/ops/matmul.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

// (m, k) x (k, n); transposed operands are views.
template <class T>
void matmul_bench(benchmark::State& state, bool transpose_a, bool transpose_b) {
  const int64_t m = state.range(0);
  const int64_t n = state.range(1);
  const int64_t k = state.range(2);
  Generator g(1);
  const auto make = [&](int64_t rows, int64_t cols, bool transposed) {
    const Shape shape = transposed ? Shape{cols, rows} : Shape{rows, cols};
    const Tensor<T> x = rand<double>(shape, -1, 1, {}, g).template to<T>();
    return transposed ? x.t() : x;
  };
  const Tensor<T> a = make(m, k, transpose_a);
  const Tensor<T> b = make(k, n, transpose_b);
  const Tensor<T> out(Shape{m, n});
  for (auto _ : state) {
    matmul_out(out, a, b);
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["GFLOP/s"] = benchmark::Counter(
      2e-9 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      benchmark::Counter::kIsIterationInvariantRate);
}

void float_matmul(benchmark::State& state, bool transpose_a, bool transpose_b) {
  matmul_bench<float>(state, transpose_a, transpose_b);
}
void double_matmul(benchmark::State& state, bool transpose_a, bool transpose_b) {
  matmul_bench<double>(state, transpose_a, transpose_b);
}
void bfloat16_matmul(benchmark::State& state, bool transpose_a, bool transpose_b) {
  matmul_bench<bfloat16>(state, transpose_a, transpose_b);
}

void settings(benchmark::internal::Benchmark* b) {
  b->UseRealTime()->MeasureProcessCPUTime()->MinTime(0.05)->Repetitions(10);
  b->ReportAggregatesOnly()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(float_matmul, nn, false, false)
    ->Apply(settings)
    ->Args({256, 256, 256})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 512});
BENCHMARK_CAPTURE(float_matmul, tn, true, false)
    ->Apply(settings)
    ->Args({1024, 1024, 1024})
    ->Args({64, 576, 16384});  // the weight gradient of a 64-channel 3x3 convolution
BENCHMARK_CAPTURE(float_matmul, nt, false, true)
    ->Apply(settings)
    ->Args({1024, 1024, 1024})
    ->Args({16384, 64, 576})  // a 64-channel 3x3 convolution
    ->Args({128, 512, 512})   // a linear layer
    ->Args({128, 10, 512})    // a classifier
    ->Args({1, 4096, 4096});  // matrix times vector
BENCHMARK_CAPTURE(double_matmul, nn, false, false)->Apply(settings)->Args({1024, 1024, 1024});
BENCHMARK_CAPTURE(bfloat16_matmul, nt, false, true)->Apply(settings)->Args({1024, 1024, 1024});

}  // namespace
}  // namespace gable

BENCHMARK_MAIN();
