// SPDX-License-Identifier: Apache-2.0
// Norms: large means (G05), running statistics, errors, thread counts, layouts.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/ops/batch_norm.hpp"
#include "gable/ops/layer_norm.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

void expect_near(const Tensor<float>& got, const std::vector<float>& want, float tolerance) {
  const std::vector<float> g = got.to_vector();
  ASSERT_EQ(g.size(), want.size());
  for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(g[i], want[i], tolerance) << "element " << i;
}

void expect_equal(const AnyTensor& a, const AnyTensor& b) {
  const auto x = a.to(DType::float64).as<double>().to_vector();
  const auto y = b.to(DType::float64).as<double>().to_vector();
  ASSERT_EQ(x, y);
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing thrown";
}

const std::vector<float> kSpread = {-1.3416354F, -0.4472118F, 0.4472118F, 1.3416354F};

// The same values through a transposed buffer.
Tensor<float> strided(const Tensor<float>& x) {
  Tensor<float> t(Shape{x.size(1), x.size(0)});
  t.t().copy_(x);
  return t.t();
}

TEST(LayerNorm, G05LargeMean) {
  for (const float base : {40000.0F, 80000.0F}) {
    const auto x = from_data<float>({base, base + 1, base + 2, base + 3}, {1, 4});
    expect_near(layer_norm(x, {4}), kSpread, 1e-4F);
    expect_near(layer_norm(strided(x), {4}), kSpread, 1e-4F);
  }
  const auto constant = full<float>({256}, 1234.0F);
  for (const float y : layer_norm(constant, {256}).to_vector()) EXPECT_EQ(y, 0.0F);
  // not a sum that floats hold exactly
  for (const float y : layer_norm(full<float>({257}, 1234.567F), {257}).to_vector())
    EXPECT_EQ(y, 0.0F);

  LayerNormOp<float> op({4}, 1e-5);
  op.set_needs(1);
  (void)op.forward(from_data<float>({40000, 40001, 40002, 40003}));
  EXPECT_NEAR(op.saved_rstd.get("test").item(), 0.894424F, 1e-6F);

  const auto rows = from_data<float>({40000, 40001, 40002, 40003, 0, 0, 0, 1}, {2, 4});
  expect_near(layer_norm(rows, {4}).select(0, 0), kSpread, 1e-4F);
  expect_near(layer_norm(strided(rows), {4}).select(0, 0), kSpread, 1e-4F);
}

TEST(LayerNorm, MeanBetweenFloats) {
  // The mean 80001 + 1/3 is no float; its rounding would be worth 4e-3.
  const auto x = from_data<float>({80000, 80001, 80003}, {1, 3});
  const double sd = std::sqrt((16.0 + 1.0 + 25.0) / 27.0 + 1e-5);
  expect_near(layer_norm(x, {3}),
              {static_cast<float>(-4 / 3.0 / sd), static_cast<float>(-1 / 3.0 / sd),
               static_cast<float>(5 / 3.0 / sd)},
              1e-5F);
}

TEST(LayerNorm, NanStaysInItsRow) {
  auto x = ones<float>({3, 4});
  x(1, 2) = std::numeric_limits<float>::quiet_NaN();
  const auto y = layer_norm(x, {4});
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y(0, i), 0.0F);
    EXPECT_TRUE(std::isnan(y(1, i)));
    EXPECT_EQ(y(2, i), 0.0F);
  }
}

TEST(LayerNorm, Errors) {
  const auto x = zeros<float>({2, 3});
  EXPECT_THROW((void)layer_norm(x, {4}), ShapeError);
  EXPECT_THROW((void)layer_norm(x, {}), ShapeError);
  EXPECT_THROW((void)layer_norm(x, {1, 2, 3}), ShapeError);
  EXPECT_THROW((void)layer_norm(zeros<float>({2, 0}), {0}), ShapeError);
  EXPECT_THROW((void)layer_norm(x, {3}, zeros<float>({2})), ShapeError);
  EXPECT_THROW((void)rms_norm(x, {3}, -1.0), TypeError);
  const std::string text = message_of([&] { (void)layer_norm(x, {4}); });
  EXPECT_NE(text.find("[layer_norm]"), std::string::npos) << text;
  EXPECT_NE(text.find("(4)"), std::string::npos) << text;
  EXPECT_NE(text.find("(2, 3)"), std::string::npos) << text;
}

TEST(BatchNorm, RunningStatistics) {
  // One channel: mean 2.5, unbiased variance 5/3; the other: all 7.
  const auto x = from_data<float>({1, 7, 2, 7, 3, 7, 4, 7}, {4, 2});
  BatchNormOptions<float> o{zeros<float>({2}), ones<float>({2}), true, 0.1, 1e-5};
  const auto y = batch_norm(x, o);
  expect_near(o.running_mean, {0.25F, 0.7F}, 1e-6F);
  expect_near(o.running_var, {0.9F + 0.1F * 5 / 3, 0.9F}, 1e-6F);
  EXPECT_NEAR(y(0, 0), -1.5 / std::sqrt(1.25 + 1e-5), 1e-6);
  EXPECT_EQ(y(0, 1), 0.0F);
  o.training = false;
  const auto e = batch_norm(x, o);
  EXPECT_NEAR(e(3, 0), (4 - 0.25) / std::sqrt(0.9 + 0.1 * 5 / 3 + 1e-5), 1e-5);
  expect_near(o.running_mean, {0.25F, 0.7F}, 1e-6F);  // evaluation changes nothing
}

TEST(BatchNorm, LargeMean) {
  for (const MemoryFormat format : {MemoryFormat::row_major, MemoryFormat::channels_last}) {
    Tensor<float> x({4, 3, 5, 7}, kCpu, format);
    for (int64_t n = 0; n < 4; ++n)
      for (int64_t i = 0; i < 35; ++i)
        for (int64_t c = 0; c < 3; ++c)
          x(n, c, i / 7, i % 7) = 80000.0F + static_cast<float>((n * 35 + i) % 3);
    BatchNormOptions<float> o{zeros<float>({3}), zeros<float>({3}), true, 1.0, 1e-5};
    const auto y = batch_norm(x, o);
    // 140 values: 47 zeros, 47 ones, 46 twos
    const double mean = 139.0 / 140;
    const double var = (47 * mean * mean + 47 * std::pow(1 - mean, 2) + 46 * std::pow(2 - mean, 2));
    for (int64_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(y(0, c, 0, 0), -mean / std::sqrt(var / 140 + 1e-5), 1e-5);
      EXPECT_NEAR(o.running_var(c), var / 139, 1e-5);
    }
  }
}

TEST(BatchNorm, OneValueAChannelThrows) {
  BatchNormOptions<float> o{zeros<float>({64}), ones<float>({64}), true, 0.1, 1e-5};
  const auto one = zeros<float>({1, 64, 1, 1});
  const std::string text = message_of([&] { (void)batch_norm(one, o); });
  EXPECT_NE(text.find("[batch_norm] expected more than one value a channel when training, got "
                      "shape (1, 64, 1, 1)"),
            std::string::npos)
      << text;
  expect_equal(o.running_var, ones<float>({64}));  // untouched
  EXPECT_THROW((void)batch_norm(zeros<float>({1, 64}), o), ShapeError);
  EXPECT_THROW((void)batch_norm(zeros<float>({0, 64, 2, 2}), o), ShapeError);
  EXPECT_NO_THROW((void)batch_norm(zeros<float>({1, 64, 1, 2}), o));
  o.training = false;
  EXPECT_NO_THROW((void)batch_norm(one, o));
}

TEST(BatchNorm, Errors) {
  const auto x = zeros<float>({2, 3, 4, 4});
  const auto three = zeros<float>({3});
  const auto four = zeros<float>({4});
  EXPECT_THROW((void)batch_norm(three), ShapeError);
  EXPECT_THROW((void)batch_norm(x, four, three), ShapeError);
  EXPECT_THROW((void)batch_norm(x, three, four), ShapeError);
  EXPECT_THROW((void)batch_norm(x, {four, four, true}), ShapeError);
  EXPECT_THROW((void)batch_norm(x, {three, {}, true}), TypeError);
  EXPECT_THROW((void)batch_norm(x, {{}, {}, false}), TypeError);
  EXPECT_THROW((void)batch_norm(x, {three, three, true, 1.5}), TypeError);
  EXPECT_THROW((void)batch_norm(x, {three, three, true, 0.1, -1.0}), TypeError);
}

// Values and gradients of one call; `x` in any layout.
struct Result {
  Tensor<float> y, dx, dgamma, dbeta, mean, var;
};
Result run_batch_norm(const Tensor<float>& x) {
  const int64_t channels = x.size(1);
  Generator g(5);
  const Variable<float> in(x, true);
  const Variable<float> gamma(rand<float>({channels}, 0.5, 1.5, {}, g), true);
  const Variable<float> beta(rand<float>({channels}, -1, 1, {}, g), true);
  BatchNormOptions<float> o{zeros<float>({channels}), ones<float>({channels}), true, 0.1, 1e-5};
  const auto y = batch_norm(in, gamma, beta, o);
  y.backward(rand<float>(x.shape(), -1, 1, {}, g));
  return {y.value(), in.grad(), gamma.grad(), beta.grad(), o.running_mean, o.running_var};
}

TEST(BatchNorm, SameBitsForAnyNumberOfThreads) {
  Generator g(3);
  const auto row_major = rand<float>({16, 48, 11, 13}, -2, 5, {}, g);
  for (const auto& x : {row_major, row_major.contiguous(MemoryFormat::channels_last)}) {
    const int threads = num_threads();
    set_num_threads(1);
    const Result one = run_batch_norm(x);
    set_num_threads(3);
    const Result three = run_batch_norm(x);
    set_num_threads(threads);
    expect_equal(one.y, three.y);
    expect_equal(one.dx, three.dx);
    expect_equal(one.dgamma, three.dgamma);
    expect_equal(one.dbeta, three.dbeta);
    expect_equal(one.mean, three.mean);
    expect_equal(one.var, three.var);
  }
}

TEST(LayerNorm, SameBitsForAnyNumberOfThreads) {
  Generator g(3);
  const auto x = rand<float>({300, 517}, -2, 5, {}, g);
  auto run = [&](int threads) {
    set_num_threads(threads);
    const Variable<float> in(x, true);
    const Variable<float> gamma(ones<float>({517}), true);
    const Variable<float> beta(zeros<float>({517}), true);
    const auto y = layer_norm(in, {517}, gamma, beta);
    y.backward(x);
    return std::vector<AnyTensor>{y.value(), in.grad(), gamma.grad(), beta.grad()};
  };
  const int threads = num_threads();
  const auto one = run(1);
  const auto three = run(3);
  set_num_threads(threads);
  for (size_t i = 0; i < one.size(); ++i) expect_equal(one[i], three[i]);
}

TEST(BatchNorm, LayoutsAgreeAndNothingIsCopied) {
  Generator g(4);
  const auto x = rand<float>({5, 37, 6, 7}, -2, 5, {}, g);
  const auto last = x.contiguous(MemoryFormat::channels_last);
  reset_copy_stats();
  const Result a = run_batch_norm(x);
  const Result b = run_batch_norm(last);
  EXPECT_EQ(copy_stats().hidden_copies, 0);
  EXPECT_TRUE(b.y.is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(b.dx.is_contiguous(MemoryFormat::channels_last));
  expect_near(b.y, a.y.to_vector(), 2e-6F);
  expect_near(b.dx, a.dx.to_vector(), 2e-6F);
  expect_near(b.dgamma, a.dgamma.to_vector(), 2e-4F);
  expect_near(b.dbeta, a.dbeta.to_vector(), 2e-4F);
}

TEST(BatchNorm, SmallFloatsKeepFloatAffineAndGradients) {
  Generator g(4);
  const auto x = rand<float>({6, 9, 4, 4}, -2, 5, {}, g);
  const Variable<bfloat16> in(x.to<bfloat16>(), true);
  const Variable<float> gamma(ones<float>({9}), true);
  const Variable<float> beta(zeros<float>({9}), true);
  const Variable<bfloat16> y = batch_norm(in, gamma, beta);
  y.backward(ones<bfloat16>(x.shape()));
  EXPECT_EQ(gamma.grad().dtype(), DType::float32);
  for (const float d : beta.grad().to_vector()) EXPECT_EQ(d, 96.0F);
  for (const float d : gamma.grad().to_vector()) EXPECT_NEAR(d, 0.0F, 1e-3F);
}

TEST(BatchNorm, ExpandedGradient) {
  const Variable<float> x(rand<float>({4, 3, 2, 2}), true);
  const auto y = batch_norm(x);
  y.backward(ones<float>({1, 1, 1, 1}).expand({4, 3, 2, 2}));
  for (const float d : x.grad().to_vector()) EXPECT_NEAR(d, 0.0F, 1e-5F);
}

}  // namespace
}  // namespace gable
