// SPDX-License-Identifier: Apache-2.0
// Pooling: special values, ties, layouts, threads, errors.
#include "gable/ops/pool.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

using Values = std::vector<float>;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return concat("[", e.op(), "] ", e.message());
  }
  return "nothing thrown";
}

TEST(Pool, MaxPropagatesNanAndNeverCountsPadding) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  const auto x = from_data<float>({1, nan, 2, 3, -1, -2, -3, -4, -inf}, {1, 1, 3, 3});
  const Values y = max_pool2d(x, 2, {.stride = 1}).to_vector();
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(y[2], 3.0F);
  EXPECT_EQ(y[3], -1.0F);
  const auto low = full<float>({1, 2, 2, 2}, -5);
  EXPECT_EQ(max_pool2d(low, 3, {.stride = 1, .padding = 1}).to_vector(), Values(8, -5.0F));
  const auto lowest = full<float>({1, 1, 2, 2}, -inf);
  EXPECT_EQ(max_pool2d(lowest, 2).item(), -inf);
}

TEST(Pool, MaxGradientGoesToTheFirstOfTies) {
  const Variable<float> x(ones<float>({1, 1, 2, 4}), true);
  max_pool2d(x, 2).backward(from_data<float>({3, 5}, {1, 1, 1, 2}));
  EXPECT_EQ(x.grad().to_vector(), (Values{3, 0, 5, 0, 0, 0, 0, 0}));
}

TEST(Pool, CeilModeHasNoWindowOutside) {
  // windows at -1, 1, 3 and 5: the last would begin in the padding below
  const auto y =
      max_pool2d(ones<float>({1, 1, 5, 5}), 2, {.stride = 2, .padding = 1, .ceil_mode = true});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 3, 3}));
  EXPECT_EQ(y.to_vector(), Values(9, 1.0F));
}

TEST(Pool, GlobalAverageOfManyValues) {
  const auto x = full<half>({1, 3, 100, 100}, half(1000.0F));  // the sum is not a half
  EXPECT_EQ(adaptive_avg_pool2d(x, 1).to<float>().to_vector(), Values(3, 1000.0F));
}

TEST(Pool, ChannelsLastIsNotCopied) {
  Generator g(1);
  const TensorOptions last{.format = MemoryFormat::channels_last};
  const Variable<float> x(rand<float>({2, 5, 6, 6}, -1, 1, last, g), true);
  reset_copy_stats();
  for (const auto& y : {max_pool2d(x, 2), avg_pool2d(x, 3), adaptive_avg_pool2d(x, 1)}) {
    EXPECT_TRUE(y.value().is_contiguous(MemoryFormat::channels_last));
    y.backward(rand<float>(y.shape(), -1, 1, last, g));
  }
  max_pool2d(x.value().narrow(1, 1, 3).slice(2, 0, {}, 2), 2);
  EXPECT_EQ(copy_stats().hidden_copies, 0);
  max_pool2d(x.value().contiguous(), 2);
  EXPECT_EQ(copy_stats().layout_conversions, 1);
}

TEST(Pool, EmptyBatch) {
  EXPECT_EQ(max_pool2d(zeros<float>({0, 3, 4, 4}), 2).shape(), (Shape{0, 3, 2, 2}));
  EXPECT_EQ(avg_pool2d(zeros<float>({2, 0, 4, 4}), 2).shape(), (Shape{2, 0, 2, 2}));
}

TEST(Pool, SameBitsForAnyThreadCount) {
  Generator g(3);
  const int before = num_threads();
  const auto data = rand<float>({3, 130, 17, 19}, -1, 1, {}, g);
  std::vector<std::vector<Values>> all;
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    std::vector<Values> results;
    const auto record = [&](auto&& pool) {
      const Variable<float> x(data, true);
      const auto y = pool(x);
      Generator other(4);
      y.backward(rand<float>(y.shape(), -1, 1, {}, other));
      results.push_back(y.value().to_vector());
      results.push_back(x.grad().to_vector());
    };
    record([](const auto& x) { return max_pool2d(x, 3, {.stride = 2, .padding = 1}); });
    record([](const auto& x) { return avg_pool2d(x, 3, {.stride = 2, .padding = 1}); });
    record([](const auto& x) { return adaptive_avg_pool2d(x, 1); });
    all.push_back(results);
  }
  set_num_threads(before);
  for (const auto& results : all) EXPECT_EQ(results, all[0]);
}

TEST(Pool, Errors) {
  const auto x = zeros<float>({1, 2, 4, 4});
  EXPECT_EQ(message_of([&] {
              max_pool2d(zeros<float>({2, 4, 4}), 2);
            }),
            "[max_pool2d] expected an input of shape (N, C, H, W), got (2, 4, 4)");
  EXPECT_EQ(message_of([&] { max_pool2d(x, 5); }),
            "[max_pool2d] expected a padded image of at least (5, 5), got (4, 4) from an input of "
            "shape (1, 2, 4, 4)");
  EXPECT_EQ(
      message_of([&] { avg_pool2d(x, 2, {.padding = 2}); }),
      "[avg_pool2d] expected padding of at least 0 and at most half the kernel (2, 2), got top "
      "2, bottom 2, left 2, right 2");
  EXPECT_EQ(message_of([&] { max_pool2d(x, 0); }),
            "[max_pool2d] expected a kernel of at least (1, 1), got (0, 0)");
  EXPECT_EQ(message_of([&] { max_pool2d(x, 2, {.stride = -1}); }),
            "[max_pool2d] expected strides of at least 1, got (-1, -1)");
  EXPECT_EQ(message_of([&] {
              adaptive_avg_pool2d(x, {0, 1});
            }),
            "[adaptive_avg_pool2d] expected a result of at least (1, 1), got (0, 1)");
  EXPECT_EQ(message_of([&] {
              adaptive_avg_pool2d(zeros<float>({1, 2, 0, 3}), 1);
            }),
            "[adaptive_avg_pool2d] expected an image of at least (1, 1), got an input of shape (1, "
            "2, 0, 3)");
}

}  // namespace
}  // namespace gable
