// SPDX-License-Identifier: Apache-2.0
// Philox against published vectors; distributions, repeatability, errors.
#include "gable/tensor/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gable/core/parallel.hpp"
#include "gable/core/philox.hpp"

namespace gable {
namespace {

using Words = std::array<uint32_t, 4>;

// Known answers of philox4x32-10, from Random123's kat_vectors.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t ones = ~uint64_t{0};
  EXPECT_EQ(philox(ones, ones, ones), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, UniformStaysBelowOne) {
  EXPECT_EQ(uniform_from_bits(0), 0.0F);
  EXPECT_LT(uniform_from_bits(0xffffffff), 1.0F);
}

// --- repeatability

template <class F>
void expect_same_on_all_threads(F draw) {
  const int before = num_threads();
  set_num_threads(1);
  const auto want = draw();
  for (const int n : {2, 4}) {
    set_num_threads(n);
    EXPECT_EQ(draw(), want) << n << " threads";
  }
  set_num_threads(before);
}

TEST(Random, SameNumbersForAnyThreadCount) {
  const Shape shape{100003};  // no multiple of a counter's four words
  auto with = [](auto f) {
    return [f] {
      Generator g(42);
      return f(g);
    };
  };
  expect_same_on_all_threads(
      with([&](Generator& g) { return rand<float>(shape, -1, 1, {}, g).to_vector(); }));
  expect_same_on_all_threads(
      with([&](Generator& g) { return randn<double>(shape, 0, 1, {}, g).to_vector(); }));
  expect_same_on_all_threads(
      with([&](Generator& g) { return randint<int64_t>(-5, 1000, shape, {}, g).to_vector(); }));
  expect_same_on_all_threads(
      with([&](Generator& g) { return bernoulli<bool>(0.3, shape, {}, g).to_vector(); }));
  expect_same_on_all_threads(
      with([&](Generator& g) { return randperm(100003, kCpu, g).to_vector(); }));
}

TEST(Random, ElementsFollowTheCounters) {
  Generator g(7);
  (void)rand<float>({8}, 0, 1, {}, g);  // counters 0 and 1
  const std::vector<float> x = rand<float>({6}, 0, 1, {}, g).to_vector();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(x[i], uniform_from_bits(philox(7, 2 + i / 4)[i % 4]));
}

TEST(Random, MemoryFormatDoesNotChangeTheElements) {
  const Shape shape{2, 3, 4, 5};
  Generator a(1);
  Generator b(1);
  const auto nhwc = randn<float>(shape, 0, 1, {.format = MemoryFormat::channels_last}, b);
  EXPECT_EQ(randn<float>(shape, 0, 1, {}, a).to_vector(), nhwc.to_vector());
  EXPECT_TRUE(nhwc.is_contiguous(MemoryFormat::channels_last));
}

TEST(Random, GeneratorStateRepeatsTheStream) {
  Generator g(9);
  (void)rand<float>({10}, 0, 1, {}, g);
  const Generator::State state = g.state();
  EXPECT_EQ(state, (Generator::State{9, 3}));
  const auto first = randn<float>({33}, 0, 1, {}, g).to_vector();
  const auto order = randperm(9, kCpu, g).to_vector();
  g.set_state(state);
  EXPECT_EQ(randn<float>({33}, 0, 1, {}, g).to_vector(), first);
  EXPECT_EQ(randperm(9, kCpu, g).to_vector(), order);
  EXPECT_NE(randn<float>({33}, 0, 1, {}, g).to_vector(), first);
  manual_seed(3);
  const auto x = rand<float>({5}).to_vector();
  manual_seed(3);
  EXPECT_EQ(rand<float>({5}).to_vector(), x);
  manual_seed(4);
  EXPECT_NE(rand<float>({5}).to_vector(), x);
}

// --- distributions

struct Moments {
  double mean, variance, skewness, kurtosis;
};
Moments moments_of(const std::vector<double>& x) {
  const auto n = static_cast<double>(x.size());
  Moments m{};
  m.mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
  for (const double v : x) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    m.skewness += d * d * d / n;
    m.kurtosis += d * d * d * d / n;
  }
  m.skewness /= std::pow(m.variance, 1.5);
  m.kurtosis /= m.variance * m.variance;
  return m;
}

// Bounds are about five standard errors of 400,000 draws.
template <class T>
class Distributions : public testing::Test {};
using Floats = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(Distributions, Floats);

TYPED_TEST(Distributions, UniformMoments) {
  Generator g(11);
  const auto x = rand<TypeParam>({400000}, -1, 3, {}, g).template to<double>().to_vector();
  const Moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 1, 0.01);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.01);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  EXPECT_GE(*low, -1);
  EXPECT_LT(*high, 3);  // never the open end, whatever the rounding
}

TYPED_TEST(Distributions, NormalMoments) {
  Generator g(12);
  const auto x = randn<TypeParam>({400000}, 0.5, 2, {}, g).template to<double>().to_vector();
  const Moments m = moments_of(x);
  EXPECT_NEAR(m.mean, 0.5, 0.02);
  EXPECT_NEAR(m.variance, 4, 0.05);
  EXPECT_NEAR(m.skewness, 0, 0.02);
  EXPECT_NEAR(m.kurtosis, 3, 0.05);
  const auto inside =
      std::count_if(x.begin(), x.end(), [](double v) { return std::abs(v - 0.5) <= 2; });
  EXPECT_NEAR(static_cast<double>(inside) / 400000, 0.6827, 0.005);
}

TYPED_TEST(Distributions, DegenerateRanges) {
  EXPECT_EQ(static_cast<float>(rand<TypeParam>({1}, 2, 2).item()), 2.0F);
  EXPECT_EQ(static_cast<float>(randn<TypeParam>({1}, 2, 0).item()), 2.0F);
}

template <class T>
class EveryDtype : public testing::Test {};
using All = testing::Types<float, double, half, bfloat16, int32_t, int64_t, uint8_t, bool>;
TYPED_TEST_SUITE(EveryDtype, All);

TYPED_TEST(EveryDtype, RandintAndBernoulli) {
  Generator g(13);
  const int64_t high = std::is_same_v<TypeParam, bool> ? 2 : 7;
  const auto x = randint<TypeParam>(0, high, {70000}, {}, g).template to<int64_t>().to_vector();
  std::vector<int64_t> counts(static_cast<size_t>(high));
  for (const int64_t v : x) {
    ASSERT_TRUE(v >= 0 && v < high) << v;
    ++counts[static_cast<size_t>(v)];
  }
  for (const int64_t c : counts)
    EXPECT_NEAR(static_cast<double>(c), 70000.0 / static_cast<double>(high), 700);
  const auto b = bernoulli<TypeParam>(0.25, {40000}, {}, g).template to<double>().to_vector();
  EXPECT_NEAR(moments_of(b).mean, 0.25, 0.012);
  for (const double v : b) ASSERT_TRUE(v == 0 || v == 1);
}

TEST(Random, IntegerRanges) {
  for (const int64_t low : {-3, 0, 100}) {
    const auto x = randint<int64_t>(low, low + 1, {5}).to_vector();
    EXPECT_EQ(x, std::vector<int64_t>(5, low));
  }
  const auto wide = randint<int64_t>(-2147483648LL, 2147483648LL, {10000}).to_vector();
  EXPECT_LT(*std::min_element(wide.begin(), wide.end()), -2000000000);
  EXPECT_GT(*std::max_element(wide.begin(), wide.end()), 2000000000);
}

TEST(Random, PermutationHoldsEachIndexOnce) {
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<int64_t> p = randperm(n).to_vector();
    std::vector<int64_t> identity(static_cast<size_t>(n));
    std::iota(identity.begin(), identity.end(), 0);
    if (n == 1000) {
      EXPECT_NE(p, identity);
    }
    std::sort(p.begin(), p.end());
    EXPECT_EQ(p, identity);
  }
}

TEST(Random, PermutationsAreUniform) {
  std::vector<int> counts(6);
  Generator g(21);
  for (int i = 0; i < 6000; ++i) {
    const auto p = randperm(3, kCpu, g).to_vector();
    ++counts[static_cast<size_t>(p[0] * 2 + (p[1] > p[2] ? 1 : 0))];
  }
  for (const int c : counts) EXPECT_NEAR(c, 1000, 150);
}

TEST(Random, Empty) {
  EXPECT_EQ(rand<float>({0, 3}).numel(), 0);
  EXPECT_EQ(randint<bool>(0, 2, {0}).numel(), 0);
  EXPECT_EQ(randn<half>({}).rank(), 0);
}

TEST(Random, Errors) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_THROW((void)rand<float>({2}, 1, 0), TypeError);
  EXPECT_THROW((void)rand<float>({2}, 0, inf), TypeError);
  EXPECT_THROW((void)randn<float>({2}, nan, 1), TypeError);
  EXPECT_THROW((void)randn<float>({2}, 0, -1), TypeError);
  EXPECT_THROW((void)randint<int64_t>(3, 3, {2}), TypeError);
  EXPECT_THROW((void)randint<int64_t>(0, int64_t{1} << 33, {2}), TypeError);
  EXPECT_THROW((void)randint<uint8_t>(0, 257, {2}), TypeError);
  EXPECT_THROW((void)randint<int32_t>(int64_t{1} << 40, (int64_t{1} << 40) + 2, {2}), TypeError);
  EXPECT_THROW((void)randint<int64_t>(int64_t{1} << 60, (int64_t{1} << 60) + 2, {2}), TypeError);
  EXPECT_THROW((void)bernoulli(1.5, {2}), TypeError);
  EXPECT_THROW((void)bernoulli(nan, {2}), TypeError);
  EXPECT_THROW((void)randperm(-1), ShapeError);
  EXPECT_THROW((void)rand<float>({-1}), ShapeError);
}

}  // namespace
}  // namespace gable
