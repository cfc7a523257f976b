// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime seen from outside: copies, memory, streams, faults, random bits, sizes.
#include <gtest/gtest.h>

#include <thread>

#include "errors.hpp"
#include "gable/memory/allocator.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/nn/nn.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/ops/index.hpp"
#include "gable/ops/loss.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/optim/sgd.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

const Device kGpu{DeviceType::cuda, 0};

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
};

// Without a device, everything says so in one line and nothing breaks.
TEST(WithoutDevice, IsExplained) {
  if (cuda::device_count() > 0) GTEST_SKIP() << "there is a device";
  EXPECT_FALSE(cuda::unavailable_reason().empty());
  const std::string error =
      error_of<DeviceError>([] { (void)zeros<float>({2}, {.device = kGpu}); });
  EXPECT_HAS(error, cuda::unavailable_reason());
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

// --- copies

template <class T>
void expect_round_trips(const Tensor<T>& x) {
  const Tensor<T> there = x.to(kGpu);
  EXPECT_EQ(concat(there.layout()), concat(x.layout().like()));
  EXPECT_EQ(there.to_vector(), x.to_vector());
}

TEST_F(Cuda, CopiesKeepValuesAndOrder) {
  const auto x = arange<float>(2 * 3 * 5 * 7).view({2, 3, 5, 7});
  expect_round_trips(x);
  expect_round_trips(x.permute({0, 2, 3, 1}));
  expect_round_trips(x.transpose(1, 3));
  expect_round_trips(x.slice(3, {}, {}, -2));
  expect_round_trips(x.narrow(2, 1, 3));
  expect_round_trips(x.select(1, 2).expand({4, 2, 5, 7}));
  expect_round_trips(x.narrow(0, 0, 0));
  expect_round_trips(scalar<float>(3));
  expect_round_trips(arange<int64_t>(1001).slice(0, 1, {}, 3));
  expect_round_trips(x.to<bfloat16>().transpose(0, 2));
  expect_round_trips(gt(x, full<float>({}, 100)).transpose(0, 1));
}

TEST_F(Cuda, CopiesIntoStridedViewsBothWays) {
  const auto host = zeros<int32_t>({6, 8});
  const auto values = arange<int32_t>(12).view({3, 4});
  host.slice(0, {}, {}, 2).slice(1, 1, {}, 2).copy_(values.to(kGpu));
  EXPECT_EQ(host.slice(0, {}, {}, 2).slice(1, 1, {}, 2).to_vector(), values.to_vector());
  EXPECT_EQ(sum(host).item(), 66);
  const auto device = zeros<int32_t>({8, 6}, {.device = kGpu});
  const auto view = device.t().slice(0, {}, {}, 2).slice(1, 1, {}, 2);
  view.copy_(values);
  EXPECT_EQ(view.to_vector(), values.to_vector());
  EXPECT_EQ(sum(device).item(), 66);
}

TEST_F(Cuda, CopiesConvertAsTheCpuDoes) {
  const auto x = from_data<double>(
      {0, -0.0, 1.5, -2.75, 255.9, 256, -1, 3e9, -3e9, 1e20, 65504, 65520, 1e-8, 0.1, 1.0 / 3,
       std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()});
  auto same = [&]<class T>(TypeTag<T>) {
    const auto from_double = x.to(kGpu).to<T>().to_vector();
    const auto from_float = x.to<float>().to(kGpu).template to<T>().to_vector();
    auto expect_equal = [](const std::vector<T>& got, const std::vector<T>& want) {
      for (size_t i = 0; i < want.size(); ++i) {
        const auto g = convert<double>(got[i]);
        const auto w = convert<double>(want[i]);
        EXPECT_TRUE(g == w || (g != g && w != w))
            << name(dtype_of<T>) << " element " << i << ": " << g << " for " << w;
      }
    };
    expect_equal(from_double, x.to<T>().to_vector());
    expect_equal(from_float, x.to<float>().template to<T>().to_vector());
  };
  AllTypes::for_each([&](auto tag) { same(tag); });
}

TEST_F(Cuda, TransposedCopiesOfEverySize) {
  for (const int64_t rows : {1, 3, 31, 32, 33, 100})
    for (const int64_t columns : {1, 5, 32, 65, 257}) {
      const auto x = arange<int32_t>(2 * rows * columns).view({2, rows, columns});
      const auto there = x.to(kGpu).transpose(1, 2).contiguous();
      EXPECT_EQ(there.to_vector(), x.transpose(1, 2).to_vector()) << rows << " x " << columns;
      const auto bytes = x.to(kGpu).to<uint8_t>().transpose(1, 2).contiguous();
      EXPECT_EQ(bytes.to_vector(), x.to<uint8_t>().transpose(1, 2).to_vector());
    }
}

TEST_F(Cuda, PinnedMemoryIsReadBeforeTheCallReturns) {
  const int64_t n = 1 << 20;
  const Tensor<float> host(AnyTensor(cuda::pinned_storage(n * 4), Layout({n}), DType::float32));
  host.fill_(1);
  const auto there = host.to(kGpu);
  host.fill_(2);
  EXPECT_EQ(sum(there).item(), static_cast<float>(n));
}

TEST_F(Cuda, MixedDevicesAreRefused) {
  const auto a = ones<float>({2});
  const auto b = ones<float>({2}, {.device = kGpu});
  EXPECT_HAS(error_of<DeviceError>([&] { (void)(a + b); }), "got cpu and cuda:0");
  EXPECT_HAS(error_of<DeviceError>([&] { (void)b(0); }), "use .to(kCpu)");
  EXPECT_HAS(error_of<DeviceError>([] {
               (void)zeros<float>({1}, {.device = {DeviceType::cuda, 99}});
             }),
             "cuda:99");
}

// --- memory

TEST_F(Cuda, MemoryIsReusedAndGivenBack) {
  Allocator& memory = allocator_of(kGpu);
  cuda::synchronize(kGpu);
  memory.empty_cache();
  const AllocatorStats before = memory.stats();
  {
    nn::Linear<float> layer(64, 32);
    layer.to(kGpu);
    optim::SGD sgd(layer.parameters(), {.lr = 0.01, .momentum = 0.9});
    int64_t reserved = 0;
    for (int step = 0; step < 200; ++step) {
      const int64_t rows = 1 + 97 * (step % 10);
      const auto x = randn<float>({rows, 64}, 0, 1, {.device = kGpu});
      mean(square(layer(Variable<float>(x)))).backward();
      sgd.step();
      sgd.zero_grad();
      const AllocatorStats now = memory.stats();
      if (step == 19) reserved = now.bytes_in_use + now.bytes_cached;
      if (step > 19) {
        ASSERT_EQ(now.bytes_in_use + now.bytes_cached, reserved) << "step " << step;
      }
    }
    const auto table = cuda::memory_table(kGpu);
    EXPECT_FALSE(table.empty());
    EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                               [](const auto& a, const auto& b) { return a.size > b.size; }));
  }
  memory.empty_cache();
  const AllocatorStats after = memory.stats();
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_EQ(after.bytes_cached, before.bytes_cached);
}

TEST_F(Cuda, OutOfMemoryIsAnExceptionAndNothingElse) {
  const auto kept = ones<float>({1000}, {.device = kGpu});
  const std::string error =
      error_of<Error>([] { (void)empty<uint8_t>({int64_t{1} << 45}, {.device = kGpu}); });
  EXPECT_HAS(error, "35184372088832 bytes on cuda:0");
  EXPECT_HAS(error, "in use");
  EXPECT_EQ(sum(kept * 2.0F).item(), 2000);
}

TEST_F(Cuda, ThreadsShareTheDevice) {
  std::vector<std::thread> threads;
  std::vector<float> sums(4);
  for (size_t t = 0; t < sums.size(); ++t)
    threads.emplace_back([&sums, t] {
      Tensor<float> x = zeros<float>({10000}, {.device = kGpu});
      for (int i = 0; i < 100; ++i) x = x + static_cast<float>(t);
      sums[t] = sum(x).item();
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < sums.size(); ++t) EXPECT_EQ(sums[t], 1e6F * static_cast<float>(t));
}

// A static tensor is destroyed after everything else: the process must still end well.
TEST_F(Cuda, StaticTensorsOutliveMain) {
  static Tensor<float> forever = ones<float>({1000}, {.device = kGpu});
  EXPECT_EQ(sum(forever).item(), 1000);
}

// --- faults

TEST_F(Cuda, BadIndicesAreReportedAndHarmless) {
  const auto x = arange<float>(12).view({3, 4}).to(kGpu);
  const auto bad = from_data<int64_t>({0, 7, 1}).to(kGpu);
  const std::string error = error_of<IndexError>([&] {
    (void)index_select(x, 0, bad);
    cuda::synchronize(kGpu);
  });
  EXPECT_HAS(error, "[index_select] expected indices in [0, 3), got 7 at row-major position 1");
  cuda::synchronize(kGpu);  // reported once
  EXPECT_EQ(sum(x).item(), 66);
  const auto labels = from_data<int64_t>({0, -1, 2}).to(kGpu);
  EXPECT_HAS(error_of<IndexError>([&] { (void)cross_entropy(x, labels).item(); }), "got -1");
  EXPECT_EQ(sum(x).item(), 66);
}

// --- random numbers

TEST_F(Cuda, DrawsTheBitsOfTheCpu) {
  auto compare = [](auto draw) {
    Generator a(12345);
    Generator b(12345);
    const auto here = draw(kCpu, a).to_vector();
    const auto there = draw(kGpu, b).to_vector();
    ASSERT_EQ(here.size(), there.size());
    for (size_t i = 0; i < here.size(); ++i) {
      ASSERT_TRUE(here[i] == there[i]) << "element " << i;
    }
    EXPECT_EQ(a.state(), b.state());
  };
  const Shape shape{1003, 11};
  compare([&](Device d, Generator& g) { return rand<float>(shape, -1, 3, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return rand<bfloat16>(shape, 0, 1, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return rand<double>(shape, 0, 1, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return randn<float>(shape, 1, 2, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return randn<half>(shape, 0, 1, {.device = d}, g); });
  compare(
      [&](Device d, Generator& g) { return randint<int64_t>(-5, 77, shape, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return bernoulli<bool>(0.3, shape, {.device = d}, g); });
  compare([&](Device d, Generator& g) { return randperm(5003, d, g); });
}

// --- sizes beyond 32 bits

TEST_F(Cuda, MoreThanTwoToThe31Elements) {
  const int64_t n = (int64_t{1} << 31) + 12345;
  const Tensor<uint8_t> x = zeros<uint8_t>({n}, {.device = kGpu});
  EXPECT_EQ(sum(x).item(), 0);
  x.narrow(0, n - 3, 3).fill_(7);
  x.narrow(0, 0, 1).fill_(1);
  EXPECT_EQ(sum(x).item(), 22);
  EXPECT_EQ(argmax(x, 0).item(), n - 3);
  EXPECT_EQ(x[n - 1].item(), 7);
  add_out(x, x, x);
  EXPECT_EQ(sum(x).item(), 44);
  // a strided view of as many elements, and one that reaches beyond
  const Tensor<uint8_t> even = x.slice(0, 0, {}, 2);
  EXPECT_EQ(sum(even).item(), 2 + 14 * (n % 2 == 1 ? 2 : 1));
  even.fill_(1);
  EXPECT_EQ(sum(x.narrow(0, 0, 1000)).item(), 500);
  EXPECT_EQ(sum(even).item(), even.numel());
  const Tensor<uint8_t> matrix = x.narrow(0, 0, int64_t{1} << 31).view({1 << 16, 1 << 15}).t();
  EXPECT_EQ(sum(matrix).item(), int64_t{1} << 30);
  EXPECT_EQ(sum(matrix, 1).select(0, 0).item(), 1 << 16);
  EXPECT_EQ(sum(matrix.contiguous()).item(), int64_t{1} << 30);
}

}  // namespace
}  // namespace gable
