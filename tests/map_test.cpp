// SPDX-License-Identifier: Apache-2.0
// map and parallel_for with users' functions.
#include "gable/ops/map.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "gable/core/parallel.hpp"

namespace gable {
namespace {

using F = std::vector<float>;

class Threads {
 public:
  explicit Threads(int n) : before_(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

// --- parallel_for

TEST(ParallelFor, AllThreadsSeeTheThreadCount) {
  const Threads three(3);
  const int expected = num_threads();  // 1 without OpenMP
  int seen = 0;
  std::thread([&] { seen = num_threads(); }).join();
  EXPECT_EQ(seen, expected);
}

TEST(ParallelFor, CoversTheRangeOnce) {
  for (const int threads : {1, 2, 3, 4}) {
    const Threads scope(threads);
    for (const int64_t n : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<size_t>(n));
      std::atomic<int> calls = 0;
      parallel_for(n, 1, [&](int64_t begin, int64_t end) {
        ++calls;
        EXPECT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) ++visits[static_cast<size_t>(i)];
      });
      for (const auto& v : visits) EXPECT_EQ(v, 1);
      EXPECT_LE(calls, threads);
      EXPECT_EQ(calls > 0, n > 0);
    }
  }
}

TEST(ParallelFor, HonoursTheGrain) {
  const Threads scope(4);
  parallel_for(100, 60, [](int64_t begin, int64_t end) { EXPECT_EQ(end - begin, 100); });
  parallel_for(100, 30, [](int64_t begin, int64_t end) { EXPECT_GE(end - begin, 30); });
  parallel_for(5, 0, [](int64_t begin, int64_t end) { EXPECT_GE(end - begin, 1); });
}

TEST(ParallelFor, RethrowsOneException) {
  for (const int threads : {1, 2, 4}) {
    const Threads scope(threads);
    auto fail_at = [](int64_t at) {
      parallel_for(1000, 1, [at](int64_t begin, int64_t end) {
        if (begin <= at && at < end) throw std::runtime_error("at " + std::to_string(at));
      });
    };
    for (const int64_t at : {0, 500, 999}) {
      try {
        fail_at(at);
        ADD_FAILURE() << "no exception";
      } catch (const std::runtime_error& e) {
        EXPECT_EQ(e.what(), "at " + std::to_string(at));
      }
    }
    EXPECT_THROW(parallel_for(1000, 1, [](int64_t, int64_t) { throw std::logic_error("all"); }),
                 std::logic_error);
    parallel_for(10, 1, [](int64_t, int64_t) {});  // still usable
  }
}

TEST(ParallelFor, Nests) {
  for (const int threads : {1, 2, 4}) {
    const Threads scope(threads);
    std::vector<std::atomic<int>> visits(64 * 64);
    parallel_for(64, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        parallel_for(64, 1, [&, i](int64_t from, int64_t to) {
          for (int64_t j = from; j < to; ++j) ++visits[static_cast<size_t>(i * 64 + j)];
        });
    });
    for (const auto& v : visits) EXPECT_EQ(v, 1);
  }
}

TEST(ParallelFor, ThreadCount) {
  const int before = num_threads();
  EXPECT_THROW(set_num_threads(0), TypeError);
  EXPECT_EQ(num_threads(), before);
}

// --- map

TEST(Map, OneToFourTensorsWithBroadcasting) {
  const auto a = arange<float>(0, 3);
  const auto b = from_data<float>({10, 20}, {2, 1});
  const auto c = scalar(100.0F);
  const auto d = arange<float>(0, 6).view({2, 3});
  EXPECT_EQ(map([](float x) { return 2 * x; }, a).to_vector(), (F{0, 2, 4}));
  EXPECT_EQ(map([](float x, float y) { return x + y; }, a, b).to_vector(),
            (F{10, 11, 12, 20, 21, 22}));
  EXPECT_EQ(map([](float x, float y, float z) { return x + y + z; }, b, a, c).to_vector(),
            (F{110, 111, 112, 120, 121, 122}));
  EXPECT_EQ(
      map([](float x, float y, float z, float w) { return x + y + z - w; }, d, a, b, c).to_vector(),
      (F{-90, -88, -86, -77, -75, -73}));
}

TEST(Map, ResultType) {
  const auto x = from_data<float>({1.5F, -2});
  const Tensor<bool> positive = map([](float v) { return v > 0; }, x);
  EXPECT_EQ(positive.to_vector(), (std::vector<bool>{true, false}));
  const Tensor<half> h = map([](float v) { return v * 2; }, x.to<half>());
  EXPECT_EQ(h.to<float>().to_vector(), (F{3, -4}));
  const Tensor<int64_t> i = map<int64_t>([](float v) { return v; }, x);
  EXPECT_EQ(i.to_vector(), (std::vector<int64_t>{1, -2}));
  const Tensor<double> mixed = map([](int32_t n, double v) { return n * v; },
                                   from_data<int32_t>({2, 3}), from_data<double>({0.5, 0.25}));
  EXPECT_EQ(mixed.to_vector(), (std::vector<double>{1, 0.75}));
}

TEST(Map, StridedEqualsContiguousOnAnyThreadCount) {
  const auto x = arange<float>(0, 300 * 500).view({300, 500});
  const auto y = arange<bfloat16>(0, 500);
  auto f = [](float a, float b) { return a * 0.5F + b; };
  const F want = map(f, x.t().contiguous(), y.narrow(0, 0, 300).contiguous()).to_vector();
  for (const int threads : {1, 2, 4}) {
    const Threads scope(threads);
    EXPECT_EQ(map(f, x.t(), y.narrow(0, 0, 300)).to_vector(), want);
    Tensor<float> out = zeros<float>({500, 600});
    map_out(out.slice(1, 0, {}, 2), f, x.t(), y.narrow(0, 0, 300));
    EXPECT_EQ(out.slice(1, 0, {}, 2).to_vector(), want);
    EXPECT_EQ(out[3](1), 0);
  }
  EXPECT_EQ(map(f, x.t(), y.narrow(0, 0, 300)).strides(), x.t().strides());
}

TEST(Map, OutMayOverlapInputs) {
  const auto x = arange<float>(0, 6);
  map_out(
      x.narrow(0, 1, 5), [](float a, float b) { return a + b; }, x.narrow(0, 0, 5), x[5]);
  EXPECT_EQ(x.to_vector(), (F{0, 5, 6, 7, 8, 9}));
  map_out(
      x, [](float a) { return -a; }, x);
  EXPECT_EQ(x[5].item(), -9);
}

TEST(Map, EmptyAndErrors) {
  auto f = [](float a) { return a; };
  auto g = [](float a, float b) { return a + b; };
  EXPECT_EQ(map(f, Tensor<float>({0, 4})).shape(), Shape({0, 4}));
  EXPECT_THROW((void)map(f, Tensor<float>()), ShapeError);
  EXPECT_THROW((void)map(g, Tensor<float>({2}), Tensor<float>({3})), ShapeError);
  EXPECT_THROW((void)map_out(Tensor<float>({3}), f, Tensor<float>({2})), ShapeError);
  EXPECT_THROW((void)map_out(ones<float>({1}).expand({2}), f, Tensor<float>({2})), ShapeError);
  EXPECT_THROW(
      (void)map([](float) -> float { throw std::runtime_error("mine"); }, ones<float>({100000})),
      std::runtime_error);
}

class Bytes : public KernelObserver {
 public:
  void begin(const char* kernel, Device, const Cost& cost) override {
    if (std::string(kernel) == "map") total += cost.bytes();
  }
  void end() override { ++ends; }
  int64_t total = 0;
  int ends = 0;
};

TEST(Map, IsObserved) {
  const auto x = ones<float>({10});
  Bytes bytes;
  {
    const ObserveKernels scope(bytes);
    (void)map([](float a) { return a; }, x);
  }
  EXPECT_EQ(bytes.total, 80);
  EXPECT_EQ(bytes.ends, 1);
}

}  // namespace
}  // namespace gable
