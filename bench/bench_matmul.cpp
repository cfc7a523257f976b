// SPDX-License-Identifier: Apache-2.0
// Matrix products. GABLE_SIMD=off measures Eigen in place of the packed kernels.
//   bench_matmul [--device=cpu|cuda] --benchmark_out=matmul.json --benchmark_out_format=json
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "gable/memory/cuda.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/tensor/random.hpp"
#include "timing.hpp"

namespace gable {
namespace {

Device device = kCpu;

struct Product {
  int64_t m;
  int64_t n;
  int64_t k;
  bool transpose_a = false;
  bool transpose_b = false;
};

// (m, k) x (k, n); transposed operands are views.
template <class T>
void time_product(benchmark::State& state, const Product& p) {
  Generator g(1);
  const auto make = [&](int64_t rows, int64_t cols, bool transposed) {
    const Shape shape = transposed ? Shape{cols, rows} : Shape{rows, cols};
    const Tensor<T> x = rand<float>(shape, -1, 1, {.device = device}, g).template to<T>();
    return transposed ? x.t() : x;
  };
  const Tensor<T> a = make(p.m, p.k, p.transpose_a);
  const Tensor<T> b = make(p.k, p.n, p.transpose_b);
  const Tensor<T> out(Shape{p.m, p.n}, device);
  const int64_t bytes = a.any().bytes() + b.any().bytes() + out.any().bytes();
  bench::time_work(
      state, device, [&] { matmul_out(out, a, b); }, bytes, 2 * p.m * p.n * p.k);
}

template <class T>
void add(const Product& p) {
  const std::string name = concat("matmul/", dtype_of<T>, "/", p.transpose_a ? "t" : "n",
                                  p.transpose_b ? "t" : "n", "/", p.m, "/", p.n, "/", p.k);
  auto* b = benchmark::RegisterBenchmark(
      name.c_str(), [p](benchmark::State& state) { time_product<T>(state, p); });
  bench::configure(b, device);
  b->MinTime(0.05)->Repetitions(10)->ReportAggregatesOnly()->Unit(benchmark::kMicrosecond);
}

int run(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--device="))
      device = device_from_string(argument.substr(9));
    else
      rest.push_back(argv[i]);
  }
  int count = static_cast<int>(rest.size());
  benchmark::Initialize(&count, rest.data());
  if (benchmark::ReportUnrecognizedArguments(count, rest.data())) return 2;
  benchmark::AddCustomContext("device", device == kCpu ? "cpu" : cuda::device_name(device));
  std::vector<Product> products = {
      {256, 256, 256},
      {1024, 1024, 1024},
      {2048, 2048, 512},
      {1024, 1024, 1024, true},
      {64, 576, 16384, true},  // the weight gradient of a 64-channel 3x3 convolution
      {1024, 1024, 1024, false, true},
      {16384, 64, 576, false, true},  // a 64-channel 3x3 convolution
      {128, 512, 512, false, true},   // a linear layer
      {128, 10, 512, false, true},    // a classifier
      {1, 4096, 4096, false, true},   // matrix times vector
  };
  if (device != kCpu)
    for (const int64_t n : {2048, 4096, 8192}) products.push_back({n, n, n, false, true});
  for (const Product& p : products) add<float>(p);
  add<double>({1024, 1024, 1024});
  for (const Product& p : products)
    if (device != kCpu || p.m == 1024) add<bfloat16>(p);
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    std::fprintf(stderr, "bench_matmul: no benchmark matches the filter\n");
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace gable

int main(int argc, char** argv) {
  try {
    return gable::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_matmul: %s\n", e.what());
    return 2;
  }
}
