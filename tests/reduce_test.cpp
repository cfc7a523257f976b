// SPDX-License-Identifier: Apache-2.0
// Reductions beyond the shared cases: special values, dtypes, empty tensors, errors, threads.
#include "gable/ops/reduce.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/ops/sum_to.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();
using F = std::vector<float>;
using I = std::vector<int64_t>;

// The values as (n), as a stride-2 view, and as the first column of (n, 2).
template <class T>
std::vector<Tensor<T>> layouts(const Tensor<T>& x) {
  const int64_t n = x.size(0);
  Tensor<T> wide = zeros<T>({2 * n});
  const Tensor<T> every_second = wide.slice(0, 0, {}, 2);
  every_second.copy_(x);
  Tensor<T> columns = zeros<T>({n, 2});
  columns.copy_(x.unsqueeze(1));
  return {x, every_second, columns.select(1, 0)};
}

template <class T>
void check_g06_common(const Tensor<T>& x, float want_sum, float want_mean) {
  for (const Tensor<T>& v : layouts(x)) {
    EXPECT_EQ(static_cast<float>(sum(v).item()), want_sum);
    EXPECT_EQ(static_cast<float>(sum(v, 0).item()), want_sum);
    EXPECT_EQ(static_cast<float>(mean(v).item()), want_mean);
  }
  const Tensor<T> columns = x.unsqueeze(1).expand({x.size(0), 2}).contiguous();
  for (const T v : sum(columns, 0).to_vector()) EXPECT_EQ(static_cast<float>(v), want_sum);
  for (const T v : mean(columns, 0).to_vector()) EXPECT_EQ(static_cast<float>(v), want_mean);
}

TEST(Reduce, G06HalfPrecision) {
  const F cancel{32000, 32000, 32000, 32000, -32000, -32000, -32000, -32000};
  check_g06_common(from_data<float>(cancel, {8}).to<half>(), 0, 0);
  check_g06_common(full<half>({4096}, half(1)), 4096, 1);
  check_g06_common(full<bfloat16>({4096}, bfloat16(1)), 4096, 1);
  const auto thousand = full<half>({100}, half(1000));
  check_g06_common(thousand, kInf, 1000);
  for (const auto& v : layouts(thousand)) EXPECT_EQ(sum<float>(v).item(), 100000);
  EXPECT_EQ(mean<double>(thousand).item(), 1000);
}

TEST(Reduce, IntegerSumsAreInt64) {
  const auto bytes = full<uint8_t>({1000, 3}, 255);
  const Tensor<int64_t> s = sum(bytes, 0);
  EXPECT_EQ(s.to_vector(), (I{255000, 255000, 255000}));
  EXPECT_EQ(sum(full<int32_t>({3}, 2000000000)).item(), 6000000000);
  EXPECT_EQ(sum(full<bool>({5, 7}, true)).item(), 35);
  EXPECT_EQ(prod(full<int32_t>({40}, 2)).item(), int64_t{1} << 40);
  EXPECT_EQ(prod(full<int64_t>({64}, 2)).item(), 0);  // wraps
  EXPECT_EQ(max(from_data<uint8_t>({3, 200, 7})).item(), 200);
  EXPECT_EQ(min(from_data<int64_t>({3, -200, 7})).item(), -200);
  EXPECT_EQ(max(from_data<bool>({false, true})).item(), true);
  EXPECT_EQ(argmax(from_data<int32_t>({3, 9, 9})).item(), 1);
}

TEST(Reduce, LargeSumsAreAccurate) {
  EXPECT_EQ(sum(ones<float>({(int64_t{1} << 24) + 100})).item(), (1 << 24) + 100);
  Generator g(3);
  const auto x = rand<float>({1500000}, 0, 1, {}, g);
  double want = 0;
  double squares = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    want += static_cast<double>(x.data()[i]);
    squares += static_cast<double>(x.data()[i]) * static_cast<double>(x.data()[i]);
  }
  const Tensor<float> columns = x.view({500000, 3});
  double parts = 0;
  for (const float v : sum(columns, 0).to_vector()) parts += static_cast<double>(v);
  EXPECT_NEAR(sum<double>(x).item(), want, 1e-9 * want);
  EXPECT_NEAR(static_cast<double>(sum(x).item()), want, 1e-7 * want);
  EXPECT_NEAR(parts, want, 1e-6 * want);
  EXPECT_NEAR(static_cast<double>(norm(x).item()), std::sqrt(squares), 1e-4);
}

TEST(Reduce, SameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  Generator g(5);
  const auto x = randn<float>({37, 5, 331, 3}, 0, 1, {}, g);
  auto bits = [&] {
    std::vector<float> out;
    for (const DimList& dims :
         {DimList{}, DimList{0}, DimList{1, 3}, DimList{0, 2}, DimList{-1}, DimList{0, 1, 2}})
      for (const auto& y : {sum(x, dims), mean(x, dims), var(x, dims), logsumexp(x, dims),
                            norm(x, 2, dims), max(x, dims)})
        for (const float v : y.to_vector()) out.push_back(v);
    return out;
  };
  set_num_threads(1);
  const F want = bits();
  for (const int n : {2, 4}) {
    set_num_threads(n);
    const F got = bits();
    ASSERT_EQ(got.size(), want.size());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << n;
  }
  set_num_threads(threads);
}

TEST(Reduce, NanPropagates) {
  for (const int64_t n : {3, 100, 40000}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      const auto x = arange<float>(0, static_cast<float>(n));
      x(at) = kNan;
      EXPECT_TRUE(std::isnan(max(x).item()));
      EXPECT_TRUE(std::isnan(min(x).item()));
      EXPECT_TRUE(std::isnan(norm(x, static_cast<double>(kInf)).item()));
      EXPECT_TRUE(std::isnan(logsumexp(x).item()));
      EXPECT_EQ(argmax(x).item(), at);
      EXPECT_EQ(argmin(x).item(), at);
      EXPECT_TRUE(std::isnan(max(x.unsqueeze(1).expand({n, 2}).contiguous(), 0)(1)));
    }
  }
  EXPECT_TRUE(gable::all(from_data<float>({kNan})).item());
}

TEST(Reduce, Infinities) {
  EXPECT_EQ(max(from_data<float>({-kInf, -kInf})).item(), -kInf);
  EXPECT_EQ(logsumexp(from_data<float>({-kInf, -kInf})).item(), -kInf);
  EXPECT_EQ(logsumexp(from_data<float>({kInf, 1})).item(), kInf);
  EXPECT_FLOAT_EQ(logsumexp(from_data<float>({1000, 1000})).item(), 1000 + std::log(2.0F));
  Variable<float> x(from_data<float>({-kInf, 0, -kInf, -kInf}).view({2, 2}), true);
  sum(logsumexp(x, 1)).backward();
  EXPECT_EQ(x.grad().to_vector(), (F{0, 1, 0, 0}));
}

TEST(Reduce, Empty) {
  const Tensor<float> x({0, 3});
  EXPECT_EQ(sum(x).item(), 0);
  EXPECT_EQ(sum(x, 0).to_vector(), (F{0, 0, 0}));
  EXPECT_EQ(sum(x, 1).shape(), (Shape{0}));
  EXPECT_EQ(prod(x, 0).to_vector(), (F{1, 1, 1}));
  EXPECT_TRUE(std::isnan(mean(x).item()));
  EXPECT_TRUE(std::isnan(var(x).item()));
  EXPECT_EQ(norm(x, 2, 0).to_vector(), (F{0, 0, 0}));
  EXPECT_EQ(norm(x, static_cast<double>(kInf)).item(), 0);
  EXPECT_EQ(logsumexp(x).item(), -kInf);
  EXPECT_TRUE(gable::all(x).item());
  EXPECT_FALSE(gable::any(x).item());
  EXPECT_EQ(max(x, 1).shape(), (Shape{0}));
  EXPECT_THROW((void)max(x), ShapeError);
  EXPECT_THROW((void)min(x, 0), ShapeError);
  EXPECT_THROW((void)argmax(x), ShapeError);
  EXPECT_THROW((void)argmin(x, 0), ShapeError);
  EXPECT_EQ(sum_to(x, {1, 3}).to_vector(), (F{0, 0, 0}));
  Variable<float> v(x, true);
  sum(v).backward();
  EXPECT_EQ(v.grad().shape(), (Shape{0, 3}));
}

TEST(Reduce, VarianceOfALargeMean) {
  const auto x = from_data<float>({40000, 40001, 40002, 40003});
  EXPECT_FLOAT_EQ(var(x, {}, false, 0).item(), 1.25F);
  EXPECT_FLOAT_EQ(gable::std(x).item(), std::sqrt(5.0F / 3));
  EXPECT_TRUE(std::isnan(var(x.narrow(0, 0, 1)).item()));
  EXPECT_EQ(var(full<float>({256}, 1234)).item(), 0);
}

TEST(Reduce, TiesShareTheGradient) {
  Variable<float> x(from_data<float>({1, 3, 3, 2, 5, 4}).view({2, 3}), true);
  max(x, 1).backward(from_data<float>({2, 7}));
  EXPECT_EQ(x.grad().to_vector(), (F{0, 1, 1, 0, 7, 0}));
  x.zero_grad();
  norm(Variable<float>(x), static_cast<double>(kInf), 0).backward(ones<float>({3}));
  EXPECT_EQ(x.grad().to_vector(), (F{0, 0, 0, 1, 1, 1}));
}

TEST(Reduce, GradientsAtZero) {
  Variable<float> x(zeros<float>({3}), true);
  (norm(x, 1) + norm(x, 2) + norm(x, static_cast<double>(kInf)) + gable::std(x)).backward();
  EXPECT_EQ(x.grad().to_vector(), (F{0, 0, 0}));
  Variable<float> z(from_data<float>({2, 0, 3, 0, 0, 3}).view({2, 3}), true);
  prod(z, 1).backward(ones<float>({2}));
  EXPECT_EQ(z.grad().to_vector(), (F{0, 6, 0, 0, 0, 0}));
}

TEST(Reduce, GradientDtypes) {
  Variable<half> x(ones<half>({4}), true);
  sum<float>(x).backward();
  EXPECT_EQ(x.grad().to_vector(), (F{1, 1, 1, 1}));
}

TEST(Reduce, KeepsTheOrderOfDimensions) {
  const auto x = zeros<float>({2, 3, 4, 5}, {.format = MemoryFormat::channels_last});
  const Tensor<float> y = sum(x, 0, true);
  EXPECT_EQ(y.stride(1), 1);
  EXPECT_EQ(sum(x, {2, 3}).shape(), (Shape{2, 3}));
  EXPECT_EQ(argmax(arange<float>(0, 24).view({2, 3, 4}), {0, 2}).to_vector(), (I{7, 7, 7}));
}

TEST(Reduce, OutForms) {
  const auto x = arange<float>(0, 6).view({2, 3});
  Tensor<float> out({3, 2});
  sum_out(out.select(1, 1), x, 0);
  EXPECT_EQ(out.select(1, 1).to_vector(), (F{3, 5, 7}));
  max_out(x.select(0, 0), x, 0);  // output inside the input
  EXPECT_EQ(x.to_vector(), (F{3, 4, 5, 3, 4, 5}));
  EXPECT_THROW((void)sum_out(Tensor<float>({2}), x, 0), ShapeError);
  EXPECT_THROW((void)sum_out(Tensor<float>({1}).expand({3}), x, 0), ShapeError);
}

TEST(Reduce, Errors) {
  const Tensor<float> x({2, 3});
  EXPECT_THROW((void)sum(x, 2), IndexError);
  EXPECT_THROW((void)sum(x, {0, -2}), ShapeError);
  EXPECT_THROW((void)norm(x, 3), TypeError);
  EXPECT_THROW((void)sum(Tensor<float>()), ShapeError);
  EXPECT_THROW((void)argmax(Tensor<float>()), ShapeError);
  EXPECT_THROW((void)sum_to(x, {2, 2}), ShapeError);
  try {
    (void)max(Tensor<float>({0, 3}), 0);
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_EQ(e.op(), "max");
    EXPECT_NE(e.message().find("(0, 3)"), std::string::npos);
  }
}

TEST(Reduce, G09SumsOfBroadcastGradients) {
  Variable<float> u(arange<float>(1, 5).view({4, 1}), true);
  Variable<float> v(from_data<float>({10, 20, 30, 40}).view({1, 4}), true);
  sum(u * v).backward();
  EXPECT_EQ(u.grad().to_vector(), (F{100, 100, 100, 100}));
  EXPECT_EQ(v.grad().to_vector(), (F{10, 10, 10, 10}));
  Variable<float> a(from_data<float>({2}), true);
  Variable<float> b(arange<float>(0, 20).view({5, 4}), true);
  sum(a * b).backward();
  EXPECT_EQ(a.grad().to_vector(), (F{190}));
  EXPECT_EQ(b.grad().to_vector(), F(20, 2));
  Variable<float> x(ones<float>({1}), true);
  sum(x.expand({100})).backward();
  EXPECT_EQ(x.grad().to_vector(), (F{100}));
}

}  // namespace
}  // namespace gable
