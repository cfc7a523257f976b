// SPDX-License-Identifier: Apache-2.0
// Speed of every elementwise kernel on the list, of copies, reductions, and of the shared op cases
// that are marked for it.
//
//   bench_ops [--device=cpu|cuda] [--elements=N] [Google Benchmark's flags]
//
// Elementwise kernels and copies run on N elements (default 2^24, beyond usual caches). Ten
// repetitions with mean, median and standard deviation are the default; real time. GB/s counts
// compulsory bytes, GFLOP/s what the kernels' cost() say.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cases/op_case.hpp"
#include "gable/core/parallel.hpp"
#include "gable/memory/allocator.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/ops/layer_norm.hpp"
#include "gable/ops/map.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/softmax.hpp"
#include "gable/ops/where.hpp"
#include "timing.hpp"

namespace gable {
namespace {

int64_t elements = int64_t{1} << 24;
Device device = kCpu;

class CostSum : public KernelObserver {
 public:
  void begin(const char*, Device, const Cost& cost) override { sum = sum + cost; }
  void end() override {}
  Cost sum;
};

// Times `work`; its cost is what its kernels report in one run before.
void time_it(benchmark::State& state, const std::function<void()>& work) {
  try {
    CostSum cost;
    {
      const ObserveKernels scope(cost);
      work();
    }
    bench::time_work(state, device, work, cost.sum.bytes(), cost.sum.total_flops());
  } catch (const std::exception& e) {
    state.SkipWithError(e.what());
  }
}

void add(const std::string& name, std::function<void(benchmark::State&)> run) {
  auto* b = benchmark::RegisterBenchmark(name.c_str(), std::move(run));
  bench::configure(b, device);
  b->Unit(benchmark::kMicrosecond);
}

template <Element T>
Tensor<T> input(uint64_t seed) {
  Generator g(seed);
  return rand<float>({elements}, 0.1, 0.9, {.device = device}, g).to<T>();
}

// --- kernels of elementwise_list.hpp

template <class F, class T, class Out>
void unary(const char* name) {
  add(concat(name, "/", dtype_of<T>), [](benchmark::State& state) {
    const auto x = input<T>(1);
    const Tensor<Out> y = zeros<Out>({elements}, {.device = device});
    time_it(state, [&] { detail::unary_out(F{}, y, x); });
  });
}
template <class F, class T>
void unary_backward(const char* name) {
  add(concat(name, "/", dtype_of<T>, "/backward"), [](benchmark::State& state) {
    const auto saved = input<T>(1);
    const auto dy = input<T>(2);
    const Tensor<T> dx = zeros<T>({elements}, {.device = device});
    UnaryBackwardArgs<F, T> args{dx.write_view(F::name), dy.view(), {}, F{}};
    if constexpr (F::save != Save::nothing) args.saved = saved.view();
    time_it(state, [&] { launch(device, args); });
  });
}
template <class F, class T, class Out>
void binary(const char* name) {
  add(concat(name, "/", dtype_of<T>), [](benchmark::State& state) {
    const auto a = input<T>(1);
    const auto b = input<T>(2);
    const Tensor<Out> y = zeros<Out>({elements}, {.device = device});
    time_it(state, [&] { detail::binary_out(F{}, y, a, b); });
  });
}
template <class F, class T>
void binary_backward(const char* name) {
  add(concat(name, "/", dtype_of<T>, "/backward"), [](benchmark::State& state) {
    const auto a = input<T>(1);
    const auto b = input<T>(2);
    const auto dy = input<T>(3);
    const Tensor<T> da = zeros<T>({elements}, {.device = device});
    const Tensor<T> db = zeros<T>({elements}, {.device = device});
    const BinaryBackwardArgs<F, T> args{
        da.write_view(F::name), db.write_view(F::name), dy.view(), a.view(), b.view(), F{}};
    time_it(state, [&] { launch(device, args); });
  });
}

template <FloatElement T>
void add_elementwise() {
#define UNARY(function, F)   \
  unary<F, T, T>(#function); \
  unary_backward<F, T>(#function);
#define PREDICATE(function, F) unary<F, T, bool>(#function);
#define BINARY(function, F)   \
  binary<F, T, T>(#function); \
  binary_backward<F, T>(#function);
#define COMPARE(function, F) binary<F, T, bool>(#function);
  GABLE_UNARY_FLOAT_OPS(UNARY)
  GABLE_UNARY_NUMERIC_OPS(UNARY)
  GABLE_PREDICATE_FLOAT_OPS(PREDICATE)
  GABLE_PREDICATE_ALL_OPS(PREDICATE)
  GABLE_BINARY_FLOAT_OPS(BINARY)
  GABLE_BINARY_NUMERIC_OPS(BINARY)
  GABLE_COMPARE_OPS(COMPARE)
#undef UNARY
#undef PREDICATE
#undef BINARY
#undef COMPARE
}

// --- layouts, conversions, and operators beside the list

template <Element To, Element From>
void add_cast() {
  add(concat("copy/", dtype_of<From>, "_to_", dtype_of<To>), [](benchmark::State& state) {
    const auto x = input<From>(1);
    const Tensor<To> y = zeros<To>({elements}, {.device = device});
    time_it(state, [&] { y.copy_(x); });
  });
}

void add_transposed(const char* name, const Shape& image, MemoryFormat from, MemoryFormat to) {
  add(name, [image, from, to](benchmark::State& state) {
    Shape shape = image;
    shape[0] = std::max<int64_t>(1, elements / (image[1] * image[2] * image[3]));
    const Tensor<float> x = full<float>(shape, 1, {.device = device, .format = from});
    const Tensor<float> y = full<float>(shape, 0, {.device = device, .format = to});
    time_it(state, [&] { y.copy_(x); });
  });
}

void add_copies() {
  add_cast<float, float>();
  add_cast<bfloat16, float>();
  add_cast<float, bfloat16>();
  add_cast<half, float>();
  add_cast<float, half>();
  add_cast<double, float>();
  const auto nchw = MemoryFormat::row_major;
  const auto nhwc = MemoryFormat::channels_last;
  add_transposed("copy/nchw_to_nhwc/64x32x32", {1, 64, 32, 32}, nchw, nhwc);
  add_transposed("copy/nhwc_to_nchw/64x32x32", {1, 64, 32, 32}, nhwc, nchw);
  add_transposed("copy/nchw_to_nhwc/3x224x224", {1, 3, 224, 224}, nchw, nhwc);
  add("copy/transposed_matrix", [](benchmark::State& state) {
    const int64_t n = elements / 4096;
    const Tensor<float> x = ones<float>({4096, n}, {.device = device});
    const Tensor<float> y = zeros<float>({n, 4096}, {.device = device});
    time_it(state, [&] { y.copy_(x.t()); });
  });
  add("add/float32/channel_bias", [](benchmark::State& state) {
    const Tensor<float> x = ones<float>({elements / 64, 64}, {.device = device});
    const Tensor<float> b = ones<float>({64}, {.device = device});
    time_it(state, [&] { add_(x, b); });
  });
}

template <FloatElement T>
void add_more() {
  add(concat("where/", dtype_of<T>), [](benchmark::State& state) {
    const auto a = input<T>(1);
    const auto b = input<T>(2);
    const Tensor<bool> c = lt(a, b);
    const Tensor<T> y = zeros<T>({elements}, {.device = device});
    time_it(state, [&] { where_out(y, c, a, b); });
  });
  add(concat("lerp/", dtype_of<T>), [](benchmark::State& state) {
    const auto a = input<T>(1);
    const auto b = input<T>(2);
    const Tensor<T> y = zeros<T>({elements}, {.device = device});
    time_it(state, [&] { lerp_out(y, a, b, 0.3); });
  });
  add(concat("dropout/", dtype_of<T>), [](benchmark::State& state) {
    const auto x = input<T>(1);
    time_it(state, [&] { (void)dropout(x, 0.5); });
  });
  if (device == kCpu)
    add(concat("map/", dtype_of<T>), [](benchmark::State& state) {
      const auto a = input<T>(1);
      const auto b = input<T>(2);
      const Tensor<T> y = zeros<T>({elements}, {.device = device});
      time_it(state, [&] {
        map_out(
            y, [](auto u, auto v) { return u * u + v; }, a, b);
      });
    });
  add(concat("rand/", dtype_of<T>), [](benchmark::State& state) {
    time_it(state, [] { (void)rand<T>({elements}, 0, 1, {.device = device}); });
  });
  add(concat("randn/", dtype_of<T>), [](benchmark::State& state) {
    time_it(state, [] { (void)randn<T>({elements}, 0, 1, {.device = device}); });
  });
}

template <FloatElement T>
void add_reductions() {
  auto reduce = [](const std::string& name, auto work) {
    add(concat(name, "/", dtype_of<T>), [work](benchmark::State& state) {
      const auto x = input<T>(1).view({elements / 4096, 4096});
      time_it(state, [&] { benchmark::DoNotOptimize(work(x)); });
    });
  };
  reduce("sum/all", [](const auto& x) { return sum(x); });
  reduce("sum/rows", [](const auto& x) { return sum(x, 1); });
  reduce("sum/columns", [](const auto& x) { return sum(x, 0); });
  reduce("max/all", [](const auto& x) { return max(x); });
  reduce("max/rows", [](const auto& x) { return max(x, 1); });
  reduce("argmax/rows", [](const auto& x) { return argmax(x, 1); });
  reduce("softmax/rows", [](const auto& x) { return softmax(x, 1); });
  reduce("layer_norm/rows", [](const auto& x) { return layer_norm(x, {4096}); });
}

// --- the shared cases, as they are

void add_cases() {
  for (const cases::OpCase& c : cases::all()) {
    if (!c.benchmark) continue;
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      if (dtype == DType::bfloat16 && !c.small_floats) continue;
      add(concat("case/", c.name, "/", dtype), [&c, dtype](benchmark::State& state) {
        std::vector<AnyTensor> inputs;
        for (const AnyTensor& x : cases::make_inputs(c, dtype)) inputs.push_back(x.to(device));
        time_it(state, [&] { benchmark::DoNotOptimize(c.run(inputs)); });
      });
    }
  }
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

int run(int argc, char** argv) {
  // Ours come first, so that the caller's flags win.
  std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=10",
                                        "--benchmark_report_aggregates_only=true",
                                        "--benchmark_min_time=0.05"};
  std::string command = "bench_ops";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    command.append(" ").append(argument);
    constexpr std::string_view kDevice = "--device=";
    if (argument.starts_with(kDevice)) {
      device = device_from_string(argument.substr(kDevice.size()));
      static_cast<void>(allocator_of(device));  // refuses an absent one at once
      continue;
    }
    constexpr std::string_view kElements = "--elements=";
    if (!argument.starts_with(kElements)) {
      arguments.emplace_back(argument);
      continue;
    }
    char* end = nullptr;
    elements = std::strtoll(argv[i] + kElements.size(), &end, 10);
    if (*end != '\0' || elements < 4096) {
      std::fprintf(stderr, "bench_ops: expected --elements=N with N >= 4096, got %s\n", argv[i]);
      return 2;
    }
  }
  std::vector<char*> pointers;
  for (std::string& a : arguments) pointers.push_back(a.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

  benchmark::AddCustomContext("device", device == kCpu ? processor() : cuda::device_name(device));
  benchmark::AddCustomContext("threads", std::to_string(num_threads()));
  benchmark::AddCustomContext("elements", std::to_string(elements));
  benchmark::AddCustomContext(
      "gable", concat(GABLE_VERSION_MAJOR, ".", GABLE_VERSION_MINOR, ".", GABLE_VERSION_PATCH));
  benchmark::AddCustomContext("compiler", "g++ " __VERSION__);
  benchmark::AddCustomContext("command", command);
  if (device != kCpu) {
    const bench::Roofs& roofs = bench::Roofs::of(device);
    benchmark::AddCustomContext("copy_gb_per_s", concat(roofs.gigabytes));
    benchmark::AddCustomContext("bfloat16_gflop_per_s", concat(roofs.matrix_flops));
  }
  add_elementwise<float>();
  add_elementwise<bfloat16>();
  add_copies();
  add_more<float>();
  add_more<bfloat16>();
  add_reductions<float>();
  add_reductions<bfloat16>();
  add_cases();
  if (benchmark::RunSpecifiedBenchmarks() == 0) {
    std::fprintf(stderr, "bench_ops: no benchmark matches the filter\n");
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
    std::fprintf(stderr, "bench_ops: %s\n", e.what());
    return 2;
  }
}
