// SPDX-License-Identifier: Apache-2.0
// Losses beyond the shared cases: labels out of range, ignored labels, extremes, 16-bit types.
#include "gable/ops/loss.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
using F = std::vector<float>;

TEST(CrossEntropy, LabelOutOfRangeNamesThePosition) {
  const auto x = zeros<float>({2, 3, 2});
  const auto t = from_data<int64_t>({0, 1, 2, 3}, {2, 2});
  try {
    (void)cross_entropy(x, t);
    FAIL();
  } catch (const IndexError& e) {
    EXPECT_EQ(e.op(), "cross_entropy");
    EXPECT_EQ(e.message(), "expected indices in [0, 3), got 3 at position (1, 1)");
  }
  EXPECT_THROW((void)cross_entropy(x, full<int64_t>({2, 2}, -1)), IndexError);
  EXPECT_NO_THROW((void)cross_entropy(x, t, {.ignore_index = 3}));
}

TEST(CrossEntropy, AllIgnoredIsZeroWithZeroGradient) {
  Variable<float> x(from_data<float>({1, 2, 3, kInf}, {2, 2}), true);
  const Variable<float> loss = cross_entropy(x, full<int64_t>({2}, -100));
  EXPECT_EQ(loss.item(), 0);
  loss.backward();
  EXPECT_EQ(x.grad().to_vector(), F(4, 0));
  EXPECT_EQ(cross_entropy(Tensor<float>({0, 5}), Tensor<int64_t>({0})).item(), 0);
}

TEST(CrossEntropy, ExtremeLogits) {
  Variable<float> x(from_data<float>({1e4F, 0, -1e4F, -kInf, 0, -kInf}, {2, 3}), true);
  const auto t = from_data<int64_t>({1, 1});
  const Variable<float> loss = cross_entropy(x, t, {.reduction = Reduction::none});
  EXPECT_EQ(loss.value().to_vector(), (F{1e4F, 0}));
  loss.backward(ones<float>({2}));
  EXPECT_EQ(x.grad().to_vector(), (F{1, -1, 0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(cross_entropy(full<float>({1, 2}, -kInf), zeros<int64_t>({1})).item()));
}

TEST(CrossEntropy, SixteenBitLogitsHaveAFloatLoss) {
  Variable<bfloat16> x(zeros<bfloat16>({64, 10}), true);
  const Variable<float> loss = cross_entropy(x, zeros<int64_t>({64}));
  EXPECT_FLOAT_EQ(loss.item(), std::log(10.0F));
  loss.backward();
  EXPECT_NEAR(x.grad()(3, 0), -0.9F / 64, 1e-4);
}

TEST(CrossEntropy, SameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  Generator g(3);
  const auto logits = randn<float>({1000, 101}, 0, 1, {}, g);
  const auto t = randint<int64_t>(0, 101, {1000}, {}, g);
  F want;
  for (const int n : {1, 2, 4}) {
    set_num_threads(n);
    Variable<float> x(logits, true);
    const Variable<float> loss = cross_entropy(x, t, {.label_smoothing = 0.1});
    loss.backward();
    F got = x.grad().to_vector();
    got.push_back(loss.item());
    got.push_back(mse_loss(logits, logits * 0.5).item());
    if (n == 1) want = got;
    EXPECT_EQ(got, want) << n;
  }
  set_num_threads(threads);
}

TEST(CrossEntropy, Errors) {
  const auto x = zeros<float>({4, 3});
  const auto t = zeros<int64_t>({4});
  EXPECT_THROW((void)cross_entropy(zeros<float>({3}), zeros<int64_t>({})), ShapeError);
  EXPECT_THROW((void)cross_entropy(x, zeros<int64_t>({4, 1})), ShapeError);
  EXPECT_THROW((void)cross_entropy(x, zeros<int64_t>({3})), ShapeError);
  EXPECT_THROW((void)cross_entropy(x, t, {.label_smoothing = 1.5}), TypeError);
  EXPECT_THROW((void)cross_entropy(x, t, {.class_weights = zeros<float>({4})}), ShapeError);
  EXPECT_THROW((void)cross_entropy(x, t, {.class_weights = zeros<int64_t>({3})}), TypeError);
  EXPECT_THROW((void)cross_entropy(Tensor<float>(), t), ShapeError);
}

TEST(PairLosses, NeverBroadcast) {
  const Tensor<float> x({4});
  const Tensor<float> y({4, 1});
  EXPECT_THROW((void)mse_loss(x, y), ShapeError);
  EXPECT_THROW((void)l1_loss(x, y), ShapeError);
  EXPECT_THROW((void)binary_cross_entropy_with_logits(x, y), ShapeError);
  try {
    (void)mse_loss(x, y);
  } catch (const ShapeError& e) {
    EXPECT_EQ(e.message(), "expected a target of the input's shape (4), got (4, 1)");
  }
}

TEST(PairLosses, BceIsFiniteForLargeLogits) {
  Variable<float> x(from_data<float>({1000, -1000, 1000, -1000}), true);
  const auto t = from_data<float>({1, 0, 0, 1});
  const Variable<float> loss = binary_cross_entropy_with_logits(x, t, Reduction::none);
  EXPECT_EQ(loss.value().to_vector(), (F{0, 0, 1000, 1000}));
  loss.backward(ones<float>({4}));
  EXPECT_EQ(x.grad().to_vector(), (F{0, 0, 1, -1}));
  EXPECT_THROW((void)binary_cross_entropy_with_logits(t, t, Reduction::mean, zeros<float>({3})),
               ShapeError);
}

TEST(PairLosses, HalfDoesNotOverflow) {
  const auto x = full<half>({100}, half(300));
  const Tensor<float> loss = mse_loss(x, zeros<half>({100}));
  EXPECT_EQ(loss.item(), 90000);
}

TEST(PairLosses, L1GradientAtZero) {
  Variable<float> x(from_data<float>({1, 2, 3}), true);
  l1_loss(x, from_data<float>({1, 1, 4}), Reduction::sum).backward();
  EXPECT_EQ(x.grad().to_vector(), (F{0, 1, -1}));
}

}  // namespace
}  // namespace gable
