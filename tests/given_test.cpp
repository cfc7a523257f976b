// SPDX-License-Identifier: Apache-2.0
// Cases with known right answers, distilled from public bug reports, on every device and through
// a view that is not contiguous. The same numbers as in the tests of each operator, which hold
// the CPU to more.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "errors.hpp"
#include "gable/autograd/apply.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/conv.hpp"
#include "gable/ops/layer_norm.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/softmax.hpp"

namespace gable {
namespace {

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();

struct Setting {
  const char* name;
  DeviceType device;
  bool contiguous;
};

class Given : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  [[nodiscard]] Device device() const { return {GetParam().device, 0}; }
  /// On the device; if the setting says so as every second element of a reversed buffer.
  template <class T>
  [[nodiscard]] Tensor<T> place(const Tensor<T>& x) const {
    const Tensor<T> there = x.to(device());
    if (GetParam().contiguous || x.rank() == 0) return there;
    Dims reversed;
    Shape stored;
    for (int d = x.rank() - 1; d >= 0; --d) {
      reversed.push_back(d);
      stored.push_back(2 * x.shape()[d]);
    }
    Tensor<T> view = zeros<T>(stored, {.device = device()}).permute(reversed);
    for (int d = 0; d < x.rank(); ++d) view = view.slice(d, 0, {}, 2);
    view.copy_(there);
    return view;
  }
  template <class T>
  [[nodiscard]] Variable<T> leaf(const Tensor<T>& x) const {
    return {place(x), true};
  }
};

void expect_near(const Tensor<float>& got, const Floats& want, float tolerance = 1e-5F) {
  const Floats g = got.to_vector();
  ASSERT_EQ(g.size(), want.size());
  for (size_t i = 0; i < g.size(); ++i)
    EXPECT_NEAR(g[i], want[i], tolerance * (1 + std::abs(want[i]))) << "element " << i;
}

TEST_P(Given, G01CopyBetweenOverlappingSlices) {
  for (int run = 0; run < 20; ++run) {
    const auto a = place(arange<float>(1, 11));
    a.narrow(0, 1, 9).copy_(a.narrow(0, 0, 9));
    EXPECT_EQ(a.to_vector(), (Floats{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const auto b = place(arange<float>(1, 11));
    b.narrow(0, 0, 9).copy_(b.narrow(0, 1, 9));
    EXPECT_EQ(b.to_vector(), (Floats{2, 3, 4, 5, 6, 7, 8, 9, 10, 10}));
    const auto c = place(arange<float>(24).view({2, 4, 3}));
    c.narrow(1, 1, 3).copy_(c.narrow(1, 0, 3));
    EXPECT_EQ(c.to_vector(), (Floats{0,  1,  2,  0,  1,  2,  3,  4,  5,  6,  7,  8,
                                     12, 13, 14, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  }
}

TEST_P(Given, G02AsStridedStaysInsideItsStorage) {
  const auto base = from_data<float>({1, 2, 3}).to(device());
  EXPECT_EQ(base.as_strided({2, 2}, {1, 1}, 0).to_vector(), (Floats{1, 2, 2, 3}));
  EXPECT_EQ(base.as_strided({2}, {-1}, 1).to_vector(), (Floats{2, 1}));
  EXPECT_EQ(base.as_strided({3}, {0}, 2).to_vector(), (Floats{3, 3, 3}));
  EXPECT_EQ(base.as_strided({0, 5}, {1, 1}, 3).numel(), 0);
  EXPECT_HAS(error_of<ShapeError>([&] {
               (void)base.as_strided({2, 2}, {2, 1}, 0);
             }),
             "storage of 3 elements");
}

TEST_P(Given, G03PermutedViewAndOneRow) {
  const auto a = place(from_data<float>({1, 2, 3, 4, 5, 6}, {2, 3})).t();
  EXPECT_EQ(matmul(a, place(ones<float>({2, 1}))).to_vector(), (Floats{5, 7, 9}));
  const auto row = place(arange<float>(12).view({1, 3, 4})).select(1, 2);
  const auto w = place(from_data<float>({1, 1, 1, 1, 1, 0, 0, 0}, {2, 4}));
  EXPECT_EQ(matmul(row, w.t()).to_vector(), (Floats{38, 8}));
}

TEST_P(Given, G04SoftmaxOfMaskedLogits) {
  const auto x = leaf(from_data<float>({1, -kInf, 1, 1, 1}));
  const Variable<float> y = softmax(x, 0);
  EXPECT_EQ(y.value().to_vector(), (Floats{0.25F, 0, 0.25F, 0.25F, 0.25F}));
  y[2].backward();
  EXPECT_EQ(x.grad().to_vector(), (Floats{-0.0625F, 0, 0.1875F, -0.0625F, -0.0625F}));
  const auto b = place(from_data<float>({-kInf, -kInf, -kInf, 0, 0, 0, 5, -kInf, -kInf}, {3, 3}));
  const Floats rows = softmax(b, 1).to_vector();
  for (size_t j = 0; j < 3; ++j) {
    EXPECT_TRUE(std::isnan(rows[j]));
    EXPECT_FLOAT_EQ(rows[3 + j], 1.0F / 3);
    EXPECT_EQ(rows[6 + j], j == 0 ? 1 : 0);
  }
  EXPECT_EQ(log_softmax(b, 1)[2].to_vector(), (Floats{0, -kInf, -kInf}));
  const auto mask =
      place(from_data<bool>({false, false, false, true, true, true, true, false, false}, {3, 3}));
  const Variable<float> z(b, true);
  const Variable<float> masked = masked_softmax(z, mask, 1);
  EXPECT_EQ(masked.value()[0].to_vector(), (Floats{0, 0, 0}));
  masked.backward(place(from_data<float>({1, 2, 3, 0, 0, 0, 4, 5, 6}, {3, 3})));
  EXPECT_EQ(z.grad().to_vector(), Floats(9, 0));
}

TEST_P(Given, G05LayerNormWithALargeMean) {
  const Floats want{-1.3416354F, -0.4472118F, 0.4472118F, 1.3416354F};
  for (const float base : {40000.0F, 80000.0F}) {
    const auto x =
        place(from_data<float>({base, base + 1, base + 2, base + 3, 0, 0, 0, 1}, {2, 4}));
    expect_near(layer_norm(x, {4})[0], want, 1e-4F);
  }
  EXPECT_EQ(layer_norm(place(full<float>({256}, 1234)), {256}).to_vector(), Floats(256, 0));
}

TEST_P(Given, G06ReductionsInHalfPrecision) {
  const auto half_of = [&](const Tensor<float>& x) { return place(x.to<half>()); };
  const auto x =
      half_of(from_data<float>({32000, 32000, 32000, 32000, -32000, -32000, -32000, -32000}));
  EXPECT_EQ(convert<float>(sum(x).item()), 0);
  EXPECT_EQ(convert<float>(sum(x, 0).item()), 0);
  EXPECT_EQ(convert<float>(sum(half_of(ones<float>({4096}))).item()), 4096);
  EXPECT_EQ(convert<float>(mean(half_of(ones<float>({4096}))).item()), 1);
  const auto thousands = half_of(full<float>({100}, 1000));
  EXPECT_EQ(convert<float>(mean(thousands).item()), 1000);
  EXPECT_EQ(convert<float>(sum(thousands).item()), kInf);
  EXPECT_EQ(convert<float>(sum(place(ones<bfloat16>({4096}))).item()), 4096);
  EXPECT_EQ(sum(half_of(ones<float>({4096, 2})), 0).to<float>().to_vector(), (Floats{4096, 4096}));
}

TEST_P(Given, G07DepthwiseStride2) {
  for (const int64_t c : {23, 24, 25}) {
    const auto x = leaf(ones<float>({1, c, 6, 6}));
    const auto w = leaf(ones<float>({c, 1, 3, 3}));
    const auto y = conv2d(x, w, ConvOptions{.stride = 2, .padding = 1, .groups = c});
    y.backward(ones_like(y.value()));
    const auto dx = x.grad().contiguous();
    const auto dw = w.grad().contiguous();
    for (int64_t i = 0; i < c; ++i) {
      EXPECT_EQ(y.value().select(1, i).to_vector(), (Floats{4, 6, 6, 6, 9, 9, 6, 9, 9}));
      EXPECT_EQ(dw.select(0, i).to_vector(), (Floats{4, 6, 6, 6, 9, 9, 6, 9, 9}));
      EXPECT_EQ(dx.select(1, i).to_vector(),
                (Floats{1, 2, 1, 2, 1, 1, 2, 4, 2, 4, 2, 2, 1, 2, 1, 2, 1, 1,
                        2, 4, 2, 4, 2, 2, 1, 2, 1, 2, 1, 1, 1, 2, 1, 2, 1, 1}));
    }
  }
}

TEST_P(Given, G08PaddingLargerThanTheKernel) {
  {
    const auto x = leaf(full<float>({1, 1, 1, 1}, 2));
    const auto w = leaf(full<float>({1, 1, 1, 1}, 3));
    const auto y = conv2d(x, w, ConvOptions{.padding = 2});
    Floats want(25, 0);
    want[12] = 6;
    EXPECT_EQ(y.value().to_vector(), want);
    y.backward(ones_like(y.value()));
    EXPECT_EQ(x.grad().item(), 3);
    EXPECT_EQ(w.grad().item(), 2);
  }
  const auto x = leaf(ones<float>({1, 1, 2, 2}));
  const auto w = leaf(ones<float>({1, 1, 3, 3}));
  const auto y = conv2d(x, w, ConvOptions{.padding = 4});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 8, 8}));
  EXPECT_EQ(sum(y.value()).item(), 36);
  y.backward(ones_like(y.value()));
  EXPECT_EQ(x.grad().to_vector(), Floats(4, 9));
  EXPECT_EQ(w.grad().to_vector(), Floats(9, 4));
  const auto dilated =
      conv2d(place(arange<float>(1, 6).view({1, 1, 1, 5})),
             place(from_data<float>({1, 10, 100}, {1, 1, 1, 3})), ConvOptions{.dilation = {1, 2}});
  EXPECT_EQ(dilated.to_vector(), (Floats{531}));
}

TEST_P(Given, G09GradientSums) {
  const auto a = leaf(from_data<float>({2}));
  const auto b = leaf(arange<float>(20).view({5, 4}));
  sum(a * b).backward();
  EXPECT_EQ(a.grad().to_vector(), (Floats{190}));
  EXPECT_EQ(b.grad().to_vector(), Floats(20, 2));
  const auto u = leaf(from_data<float>({1, 2, 3, 4}, {4, 1}));
  const auto v = leaf(from_data<float>({10, 20, 30, 40}, {1, 4}));
  sum(u * v).backward();
  EXPECT_EQ(u.grad().to_vector(), Floats(4, 100));
  EXPECT_EQ(v.grad().to_vector(), Floats(4, 10));
  const auto x = leaf(from_data<float>({1}));
  x.expand({100})[0].backward();
  EXPECT_EQ(x.grad().to_vector(), (Floats{1}));
  x.zero_grad();
  sum(x.expand({100})).backward();
  EXPECT_EQ(x.grad().to_vector(), (Floats{100}));
}

TEST_P(Given, G10GradientThroughAStridedSlice) {
  const auto z = leaf(zeros<float>({2, 3}));
  const auto wa = place(from_data<float>({1, 2, 3}, {1, 3}));
  const auto wb = place(from_data<float>({100, 101, 102}, {1, 3}));
  (sum(z.slice(0, 0, {}, 2) * wa) + sum(z.slice(0, 1, {}, 2) * wb)).backward();
  EXPECT_EQ(z.grad().to_vector(), (Floats{1, 2, 3, 100, 101, 102}));
  const auto z5 = leaf(zeros<float>({5}));
  (z5.slice(0, 1, {}, 4)[0] * 7.0F).backward();
  EXPECT_EQ(z5.grad().to_vector(), (Floats{0, 7, 0, 0, 0}));
}

std::string setting_name(const testing::TestParamInfo<Setting>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Devices, Given,
                         testing::Values(Setting{"CpuContiguous", DeviceType::cpu, true},
                                         Setting{"CpuStrided", DeviceType::cpu, false},
                                         Setting{"CudaContiguous", DeviceType::cuda, true},
                                         Setting{"CudaStrided", DeviceType::cuda, false}),
                         setting_name);

}  // namespace
}  // namespace gable
