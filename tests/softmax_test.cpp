// SPDX-License-Identifier: Apache-2.0
// softmax and cumsum beyond the shared cases: -inf, NaN, dtypes, out forms, errors, threads.
#include "gable/ops/softmax.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
using F = std::vector<float>;
using I = std::vector<int64_t>;

Tensor<float> masked_batch() {
  return from_data<float>({-kInf, -kInf, -kInf, 0, 0, 0, 5, -kInf, -kInf}, {3, 3});
}

TEST(Softmax, G04MaskedLogits) {
  Variable<float> x(from_data<float>({1, -kInf, 1, 1, 1}), true);
  const Variable<float> y = softmax(x, 0);
  EXPECT_EQ(y.value().to_vector(), (F{0.25F, 0, 0.25F, 0.25F, 0.25F}));
  y[2].backward();
  EXPECT_EQ(x.grad().to_vector(), (F{-0.0625F, 0, 0.1875F, -0.0625F, -0.0625F}));
}

TEST(Softmax, G04Batch) {
  const Tensor<float> b = masked_batch();
  // along rows, and along the columns of the transposed storage
  for (const Tensor<float>& x : {b, b.t().contiguous().t()}) {
    const Tensor<float> y = softmax(x, 1);
    for (int64_t j = 0; j < 3; ++j) {
      EXPECT_TRUE(std::isnan(y(0, j)));
      EXPECT_FLOAT_EQ(y(1, j), 1.0F / 3);
      EXPECT_EQ(y(2, j), j == 0 ? 1 : 0);
    }
    EXPECT_EQ(log_softmax(x, 1)[2].to_vector(), (F{0, -kInf, -kInf}));
  }
}

TEST(Softmax, G04MaskedVariant) {
  Variable<float> x(masked_batch(), true);
  const Tensor<bool> mask =
      from_data<bool>({false, false, false, true, true, true, true, false, false}, {3, 3});
  Variable<float> y = masked_softmax(x, mask, 1);
  EXPECT_EQ(y.value()[0].to_vector(), (F{0, 0, 0}));
  EXPECT_EQ(y.value()[2].to_vector(), (F{1, 0, 0}));
  y.backward(from_data<float>({1, 2, 3, 0, 0, 0, 4, 5, 6}, {3, 3}));
  EXPECT_EQ(x.grad().to_vector(), F(9, 0));
  // a row that is -inf where the mask keeps it
  y = masked_softmax(x, ones<bool>({1}), 1);
  EXPECT_EQ(y.value()[0].to_vector(), (F{0, 0, 0}));
  // NaN under the mask does not leak
  const auto z = from_data<float>({kNan, 1, 1});
  EXPECT_EQ(masked_softmax(z, from_data<bool>({false, true, true}), 0).to_vector(),
            (F{0, 0.5F, 0.5F}));
}

TEST(LogSoftmax, GradientIsZeroAtMinusInfinity) {
  Variable<float> x(from_data<float>({0, -kInf, 0}), true);
  log_softmax(x, 0).backward(from_data<float>({1, 7, 1}));
  EXPECT_EQ(x.grad().to_vector(), (F{0, 0, 0}));
}

TEST(Softmax, ExtremeLogits) {
  EXPECT_EQ(softmax(from_data<float>({1e30F, 0, -1e30F}), 0).to_vector(), (F{1, 0, 0}));
  EXPECT_EQ(log_softmax(from_data<float>({1e4F, 0}), 0).to_vector(), (F{0, -1e4F}));
  for (const float v : softmax(from_data<float>({1, kNan, 2}), 0).to_vector())
    EXPECT_TRUE(std::isnan(v));
  EXPECT_TRUE(std::isnan(softmax(from_data<float>({kInf, 1}), 0)(1)));
  EXPECT_EQ(static_cast<float>(softmax(full<half>({4096}, half(11)), 0)(7)), 1.0F / 4096);
}

TEST(Softmax, OutMayBeTheInput) {
  const auto x = zeros<float>({2, 4});
  softmax_out(x, x, 1);
  EXPECT_EQ(x.to_vector(), F(8, 0.25F));
  log_softmax_out(x.t(), x.t(), 0);
  EXPECT_FLOAT_EQ(x(1, 2), -std::log(4.0F));
  EXPECT_THROW((void)softmax_out(Tensor<float>({4, 2}), x, 0), ShapeError);
}

TEST(Softmax, Errors) {
  const Tensor<float> x({2, 3});
  EXPECT_THROW((void)softmax(x, 2), IndexError);
  EXPECT_THROW((void)log_softmax(Tensor<float>(), 0), ShapeError);
  EXPECT_THROW((void)masked_softmax(x, Tensor<bool>({2}), 1), ShapeError);
  EXPECT_THROW((void)cumsum(x, -3), IndexError);
}

TEST(Softmax, SameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  Generator g(11);
  const auto x = randn<float>({65, 7, 301}, 0, 1, {}, g);
  auto bits = [&] {
    F out;
    for (const int64_t dim : {0, 1, 2})
      for (const auto& y : {softmax(x, dim), log_softmax(x, dim), cumsum(x, dim)})
        for (const float v : y.to_vector()) out.push_back(v);
    return out;
  };
  set_num_threads(1);
  const F want = bits();
  for (const int n : {2, 4}) {
    set_num_threads(n);
    const F got = bits();
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << n;
  }
  set_num_threads(threads);
}

TEST(Cumsum, Dtypes) {
  EXPECT_EQ(cumsum(from_data<uint8_t>({200, 100, 1}), 0).to_vector(), (I{200, 300, 301}));
  EXPECT_EQ(cumsum(from_data<bool>({true, false, true}), 0).to_vector(), (I{1, 1, 2}));
  const Tensor<bfloat16> y = cumsum(full<bfloat16>({512}, bfloat16(1)), 0);
  EXPECT_EQ(static_cast<float>(y(511)), 512);  // a bfloat16 accumulator stalls at 256
  const auto x = arange<float>(0, 4);
  cumsum_out(x, x, 0);
  EXPECT_EQ(x.to_vector(), (F{0, 1, 3, 6}));
}

}  // namespace
}  // namespace gable
