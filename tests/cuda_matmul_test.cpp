// SPDX-License-Identifier: Apache-2.0
// Matrix products on CUDA: every layout that the library can express runs without a copy, all
// others are right too.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "gable/memory/copy_stats.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

const Device kGpu{DeviceType::cuda, 0};

class CudaMatmul : public testing::Test {
 protected:
  void SetUp() override {
    if (cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
};

// Small integers: exact in every dtype, whatever the order of the sums.
template <class T>
Tensor<T> small(const Shape& shape) {
  return randint<int64_t>(-3, 4, shape).to<T>();
}

template <class T>
struct Operands {
  Tensor<T> a;
  Tensor<T> b;
};

// `make` gives views of tensors that it is handed.
template <class T>
void expect_product(const Shape& a_shape, const Shape& b_shape,
                    const std::function<Operands<T>(const Tensor<T>&, const Tensor<T>&)>& make,
                    int64_t copies, const std::string& what) {
  const auto a = small<T>(a_shape);
  const auto b = small<T>(b_shape);
  const Operands<T> host = make(a, b);
  const Operands<T> device = make(a.to(kGpu), b.to(kGpu));
  const auto want = matmul(host.a, host.b);
  reset_copy_stats();
  const auto got = matmul(device.a, device.b);
  EXPECT_EQ(copy_stats().hidden_copies, copies) << what;
  EXPECT_EQ(got.to_vector(), want.to_vector()) << what;
}

template <class T>
void check_layouts(const std::string& what) {
  using Pair = Operands<T>;
  using X = const Tensor<T>&;
  manual_seed(11);
  expect_product<T>(
      {33, 17}, {17, 21},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " plain");
  expect_product<T>(
      {17, 33}, {21, 17},
      [](X a, X b) {
        return Pair{a.t(), b.t()};
      },
      0, what + " transposed");
  expect_product<T>(
      {40, 32}, {24, 40},
      [](X a, X b) {
        return Pair{a.narrow(1, 8, 16), b.narrow(0, 4, 16)};
      },
      0, what + " sliced");
  expect_product<T>(
      {40, 33}, {40, 7},
      [](X a, X b) {
        return Pair{a.narrow(1, 1, 31).t(), b.narrow(1, 1, 5)};
      },
      0, what + " unaligned");
  expect_product<T>(
      {5, 8, 16}, {5, 16, 12},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " batch");
  expect_product<T>(
      {5, 8, 16}, {16, 12},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " shared right");
  expect_product<T>(
      {8, 16}, {5, 16, 12},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " shared left");
  expect_product<T>(
      {3, 8, 4, 16}, {3, 8, 4, 16},
      [](X a, X b) {
        return Pair{a.transpose(1, 2), b.permute({0, 2, 3, 1})};
      },
      0, what + " heads");
  expect_product<T>(
      {3, 1, 8, 16}, {4, 16, 8},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " crossed batches");
  expect_product<T>(
      {64}, {64, 5},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " row");
  expect_product<T>(
      {5, 64}, {128},
      [](X a, X b) {
        return Pair{a, b.slice(0, {}, {}, 2)};
      },
      0, what + " column");
  expect_product<T>(
      {6, 0}, {0, 4},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " inner 0");
  expect_product<T>(
      {0, 6}, {6, 4},
      [](X a, X b) {
        return Pair{a, b};
      },
      0, what + " empty");
  const int64_t copied = FloatElement<T> ? 1 : 0;  // integers read any strides
  expect_product<T>(
      {16, 20}, {20, 12},
      [](X a, X b) {
        return Pair{a.slice(0, {}, {}, 2).slice(1, {}, {}, 2), b.narrow(0, 0, 10)};
      },
      copied, what + " two strides");
  expect_product<T>(
      {16, 20}, {20, 12},
      [](X a, X b) {
        return Pair{a.slice(0, {}, {}, -1), b};
      },
      copied, what + " flipped");
  expect_product<T>(
      {1, 20}, {20, 12},
      [](X a, X b) {
        return Pair{a.expand({9, 20}), b};
      },
      copied, what + " repeated rows");
}

TEST_F(CudaMatmul, AnyLayout) {
  check_layouts<float>("float");
  check_layouts<double>("double");
  check_layouts<half>("half");
  check_layouts<bfloat16>("bfloat16");
  check_layouts<int32_t>("int32");
  check_layouts<int64_t>("int64");
}

template <class T>
void check_bias(const std::string& what) {
  manual_seed(12);
  const auto x = small<T>({4, 24, 32});
  const auto w = small<T>({40, 32});
  const auto bias = small<T>({80});
  for (const auto& b : {bias.narrow(0, 0, 40), bias.narrow(0, 1, 40), bias.slice(0, {}, {}, 2)}) {
    const auto device_bias = bias.to(kGpu);
    const auto view = device_bias.with(b.layout());
    EXPECT_EQ(linear(x.to(kGpu), w.to(kGpu), view).to_vector(), linear(x, w, b).to_vector())
        << what << " bias " << concat(b.layout());
  }
  EXPECT_EQ(
      linear(x.narrow(2, 0, 0).to(kGpu), w.narrow(1, 0, 0).to(kGpu), bias.narrow(0, 0, 40).to(kGpu))
          .to_vector(),
      linear(x.narrow(2, 0, 0), w.narrow(1, 0, 0), bias.narrow(0, 0, 40)).to_vector())
      << what;
}

TEST_F(CudaMatmul, Bias) {
  check_bias<float>("float");
  check_bias<double>("double");
  check_bias<half>("half");
  check_bias<bfloat16>("bfloat16");
}

TEST_F(CudaMatmul, StridedOutputs) {
  manual_seed(13);
  const auto a = small<float>({12, 20});
  const auto b = small<float>({20, 16});
  const auto want = matmul(a, b).to_vector();
  const auto room = zeros<float>({40, 64}, {.device = kGpu});
  for (const auto& out :
       {room.narrow(0, 3, 12).narrow(1, 5, 16), room.narrow(0, 3, 16).narrow(1, 5, 12).t(),
        room.slice(0, {}, {}, 3).narrow(0, 1, 12).slice(1, {}, {}, 4),
        room.narrow(0, 0, 12).narrow(1, 0, 16).slice(0, {}, {}, -1)}) {
    room.zero_();
    matmul_out(out, a.to(kGpu), b.to(kGpu));
    EXPECT_EQ(out.to_vector(), want) << concat(out.layout());
  }
}

TEST_F(CudaMatmul, IntegersWrap) {
  const auto a = full<uint8_t>({3, 300}, uint8_t{200});
  const auto b = full<uint8_t>({300, 2}, uint8_t{3});
  EXPECT_EQ(matmul(a.to(kGpu), b.to(kGpu)).to_vector(), matmul(a, b).to_vector());
}

}  // namespace
}  // namespace gable
