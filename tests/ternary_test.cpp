// SPDX-License-Identifier: Apache-2.0
// where, masked_fill, lerp, cast, dropout beyond the shared cases.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/where.hpp"

namespace gable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using F = std::vector<float>;

TEST(Where, EveryDtype) {
  const auto c = from_data<bool>({true, false});
  EXPECT_EQ(where(c, from_data<int64_t>({1, 2}), int64_t{7}).to_vector(),
            (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(where(c, 9, from_data<uint8_t>({1, 2})).to_vector(), (std::vector<uint8_t>{9, 2}));
  EXPECT_EQ(where(c, c, logical_not(c)).to_vector(), (std::vector<bool>{true, true}));
}

TEST(Where, IgnoresWhatIsNotChosen) {
  const auto c = from_data<bool>({true, false});
  Variable<float> a(from_data<float>({1, kNan}), true);
  Variable<float> b(from_data<float>({kNan, 2}), true);
  const Variable<float> y = where(c, a, b);
  EXPECT_EQ(y.value().to_vector(), (F{1, 2}));
  y.backward(from_data<float>({3, 4}));
  EXPECT_EQ(a.grad().to_vector(), (F{3, 0}));
  EXPECT_EQ(b.grad().to_vector(), (F{0, 4}));
}

TEST(Where, OutMayOverlapInputs) {
  const auto x = arange<float>(0, 6);
  where_out(x.narrow(0, 1, 5), from_data<bool>({true, true, false, true, false}), x.narrow(0, 0, 5),
            x.narrow(0, 1, 5));
  EXPECT_EQ(x.to_vector(), (F{0, 0, 1, 3, 3, 5}));
}

TEST(Where, Errors) {
  const Tensor<bool> c({2});
  const Tensor<float> x({3});
  EXPECT_THROW((void)where(c, x, x), ShapeError);
  EXPECT_THROW((void)where(Tensor<bool>(), x, x), ShapeError);
  EXPECT_THROW((void)where_out(Tensor<float>({2, 3}), Tensor<bool>({3}), x, x), ShapeError);
  EXPECT_THROW((void)masked_fill(x, c, 0), ShapeError);
  EXPECT_THROW((void)masked_fill_(x, Tensor<bool>({2, 3}), 0), ShapeError);
  const Tensor<float> wide = x.expand({2, 3});
  EXPECT_THROW((void)masked_fill_(wide, Tensor<bool>({3}), 0), ShapeError);
}

TEST(MaskedFill, InPlaceAndInfinity) {
  const auto x = arange<float>(0, 4);
  masked_fill_(x, gt(x, 1.5F), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(x[1].item(), 1);
  EXPECT_TRUE(std::isinf(x[3].item()));
  const auto i = arange<int64_t>(0, 3);
  const int64_t big = (int64_t{1} << 62) + 1;
  EXPECT_EQ(masked_fill(i, eq(i, 1), big).to_vector(), (std::vector<int64_t>{0, big, 2}));
}

TEST(Lerp, EndsAreExact) {
  const auto a = from_data<float>({0.1F, 1e8F, -3});
  const auto b = from_data<float>({0.7F, 0.1F, 5});
  EXPECT_EQ(lerp(a, b, 0.0).to_vector(), a.to_vector());
  EXPECT_EQ(lerp(a, b, 1.0).to_vector(), b.to_vector());
  EXPECT_EQ(lerp(a, b, ones<float>({1})).to_vector(), b.to_vector());
  const auto x = a.clone();
  lerp_out(x, x, b, 1.0);
  EXPECT_EQ(x.to_vector(), b.to_vector());
  EXPECT_THROW((void)lerp(a, Tensor<float>({2}), 0.5), ShapeError);
}

TEST(Lerp, WeightIsNotRoundedToTheDtype) {
  const auto zero = zeros<bfloat16>({1});
  const auto x = full<bfloat16>({1}, bfloat16(1024));
  const auto want = static_cast<float>(bfloat16(0.1F * 1024));
  EXPECT_EQ(static_cast<float>(lerp(zero, x, 0.1).item()), want);
}

TEST(Cast, GradientIsCastBack) {
  Variable<bfloat16> x(from_data<float>({1, 2}).to<bfloat16>(), true);
  const Variable<float> y = cast<float>(x);
  y.backward(from_data<float>({0.5F, 4}));
  EXPECT_EQ(x.grad().to_vector(), (F{0.5F, 4}));
  const Variable<bfloat16> same = cast<bfloat16>(x);
  EXPECT_EQ(same.node(), x.node());
}

TEST(Cast, FloatToInteger) {
  const auto x = from_data<float>({2.9F, -2.9F, kNan, 1e20F, -1e20F});
  EXPECT_EQ(cast<int32_t>(x).to_vector(),
            (std::vector<int32_t>{2, -2, 0, std::numeric_limits<int32_t>::max(),
                                  std::numeric_limits<int32_t>::min()}));
  EXPECT_EQ(cast<uint8_t>(x).to_vector(), (std::vector<uint8_t>{2, 0, 0, 255, 0}));
  EXPECT_EQ(cast<bool>(from_data<float>({0, -0.0F, kNan, 0.1F})).to_vector(),
            (std::vector<bool>{false, false, true, true}));
  Tensor<int64_t> out({5});
  cast_out(out, x);
  EXPECT_EQ(out[0].item(), 2);
  EXPECT_THROW((void)cast_out(Tensor<int64_t>({4}), x), ShapeError);
}

TEST(Dropout, KeepsTheMeanAndScales) {
  const auto x = ones<float>({200, 300});
  Generator g(7);
  const std::vector<float> y = dropout(x, 0.25, true, g).to_vector();
  double sum = 0;
  for (const float v : y) {
    EXPECT_TRUE(v == 0 || v == 1 / 0.75F);
    sum += v;
  }
  EXPECT_NEAR(sum / static_cast<double>(y.size()), 1, 0.01);
}

TEST(Dropout, MaskDependsOnTheSeedOnly) {
  const Shape shape{2, 3, 50, 70};
  auto draw = [&](MemoryFormat format) {
    Generator g(3);
    return dropout(full<float>(shape, 1, {.format = format}), 0.5, true, g).to_vector();
  };
  const int threads = num_threads();
  const std::vector<float> want = draw(MemoryFormat::row_major);
  for (const int n : {1, 2, 4}) {
    set_num_threads(n);
    EXPECT_EQ(draw(MemoryFormat::row_major), want) << n << " threads";
  }
  set_num_threads(threads);
  EXPECT_EQ(draw(MemoryFormat::channels_last), want);
}

TEST(Dropout, GradientUsesTheMask) {
  Generator g(5);
  Variable<float> x(full<float>({1000}, 3), true);
  const Variable<float> y = dropout(x, 0.4, true, g);
  y.backward(ones<float>({1000}));
  const std::vector<float> value = y.value().to_vector();
  const std::vector<float> gradient = x.grad().to_vector();
  for (size_t i = 0; i < value.size(); ++i) EXPECT_FLOAT_EQ(value[i], 3 * gradient[i]);
}

TEST(Dropout, Edges) {
  const auto x = from_data<float>({1, kNan});
  EXPECT_EQ(dropout(x, 0.5, false).data(), x.data());
  EXPECT_EQ(dropout(x, 0.0, true).data(), x.data());
  EXPECT_EQ(dropout(x, 1.0, true).to_vector(), (F{0, 0}));
  EXPECT_EQ(dropout(Tensor<half>({0, 2})).numel(), 0);
  EXPECT_THROW((void)dropout(x, 1.5), TypeError);
  EXPECT_THROW((void)dropout(x, -0.1), TypeError);
  EXPECT_THROW((void)dropout(x, static_cast<double>(kNan)), TypeError);
  EXPECT_THROW((void)dropout(Tensor<float>()), ShapeError);
}

}  // namespace
}  // namespace gable
