// SPDX-License-Identifier: Apache-2.0
// Matrix products: exact cases, integer types, out forms, empties, errors, hidden copies.
#include "gable/ops/matmul.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/ops/cast.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

using Values = std::vector<float>;

TEST(Matmul, G03PermutedViewAndOneRow) {
  const auto at = from_data<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto b = ones<float>({2, 1});
  EXPECT_EQ(matmul(at.transpose(0, 1), b).to_vector(), (Values{5, 7, 9}));

  const auto base = arange<float>(12).view({1, 3, 4});
  const auto x = base.select(1, 2);
  EXPECT_EQ(concat(x.shape(), x.strides()), "(1, 4)(12, 1)");
  EXPECT_TRUE(x.is_contiguous());
  const auto w = from_data<float>({1, 1, 1, 1, 1, 0, 0, 0}, {2, 4});
  reset_copy_stats();
  EXPECT_EQ(matmul(x, w.transpose(0, 1)).to_vector(), (Values{38, 8}));
  EXPECT_EQ(linear(x, w).to_vector(), (Values{38, 8}));
  EXPECT_EQ(copy_stats().hidden_copies, 0);
}

template <class T>
class MatmulIntegers : public testing::Test {};
using Integers = testing::Types<int32_t, int64_t, uint8_t>;
TYPED_TEST_SUITE(MatmulIntegers, Integers);

TYPED_TEST(MatmulIntegers, ExactAndWraps) {
  using T = TypeParam;
  const auto a = from_data<T>({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto b = from_data<T>({1, 0, 2, 1, 0, 3}, {3, 2});
  EXPECT_EQ(matmul(a, b).to_vector(), (std::vector<T>{5, 11, 14, 23}));
  EXPECT_EQ(matmul(b.t(), a.t()).to_vector(), (std::vector<T>{5, 14, 11, 23}));
  const T top = std::numeric_limits<T>::max();
  const auto big = full<T>({1, 2}, top);
  const auto two = full<T>({2, 1}, T{1});
  using U = std::make_unsigned_t<T>;
  EXPECT_EQ(matmul(big, two).item(), static_cast<T>(static_cast<U>(top) + static_cast<U>(top)));
}

TEST(Matmul, NoCopyOfStridedOperands) {
  Generator g(1);
  const auto x = rand<float>({6, 8}, -1, 1, {}, g);
  const auto y = rand<float>({8, 6}, -1, 1, {}, g);
  const auto batch = rand<float>({3, 8, 8}, -1, 1, {}, g);
  const auto w = rand<float>({4, 8}, -1, 1, {}, g);
  const auto image = rand<float>({2, 8, 3, 3}, -1, 1, {.format = MemoryFormat::channels_last}, g);
  const std::vector<std::pair<const char*, std::function<Tensor<float>()>>> calls = {
      {"transposed left", [&] { return matmul(y.t(), y); }},
      {"transposed right", [&] { return matmul(x, x.t()); }},
      {"both transposed", [&] { return matmul(y.t(), x.t()); }},
      {"every second row", [&] { return matmul(x.slice(0, 0, {}, 2), y); }},
      {"column block", [&] { return matmul(x.narrow(1, 2, 4), y.narrow(0, 0, 4)); }},
      {"every second column", [&] { return matmul(x.slice(1, 0, {}, 2), y.narrow(0, 0, 4)); }},
      {"flipped", [&] { return matmul(x.with(x.layout().flip({0})), y); }},
      {"selected row", [&] { return matmul(batch.select(1, 3), y); }},
      {"expanded",
       [&] {
         return matmul(x.narrow(0, 0, 1).expand({5, 8}), y);
       }},
      {"batch of one matrix",
       [&] {
         return matmul(x.expand({3, 6, 8}), batch);
       }},
      {"permuted batch",
       [&] {
         return matmul(batch.permute({1, 0, 2}), y);
       }},
      {"linear of a transposed input", [&] { return linear(y.t(), w); }},
      {"linear of a channels-last image",
       [&] {
         return linear(image.permute({0, 2, 3, 1}), w);
       }},
  };
  for (const auto& [name, call] : calls) {
    reset_copy_stats();
    const Tensor<float> got = call();
    EXPECT_EQ(copy_stats().hidden_copies, 0) << name;
    EXPECT_TRUE(got.defined());
  }
}

TEST(Matmul, GradientsCopyNoOperand) {
  Generator g(2);
  const Variable<float> x(rand<float>({4, 5, 8}, -1, 1, {}, g), true);
  const Variable<float> w(rand<float>({8, 6}, -1, 1, {}, g), true);
  const Variable<float> y = matmul(x, w);
  reset_copy_stats();
  y.backward(ones<float>({4, 5, 6}));
  EXPECT_EQ(copy_stats().hidden_copies, 0);
  EXPECT_EQ(x.grad().shape(), (Shape{4, 5, 8}));
  EXPECT_EQ(w.grad().shape(), (Shape{8, 6}));
}

TEST(Matmul, SmallFloatWeightGradientsAreFloat) {
  // 4096 products of one: exact in float, 256 at most in a bfloat16 running sum
  const Variable<bfloat16> x(ones<bfloat16>({4096, 1}));
  const Variable<bfloat16> w(ones<bfloat16>({1, 1}), true);
  linear(x, w).backward(ones<bfloat16>({4096, 1}));
  EXPECT_EQ(w.grad().item(), 4096.0F);
  // Through a cast, as under autocast, they are not rounded either: 257 is no bfloat16.
  const Variable<float> master(ones<float>({1, 1}), true);
  linear(Variable<bfloat16>(ones<bfloat16>({257, 1})), cast<bfloat16>(master))
      .backward(ones<bfloat16>({257, 1}));
  EXPECT_EQ(master.grad().item(), 257.0F);
}

TEST(Matmul, OutForms) {
  const auto a = arange<float>(6).view({2, 3});
  const auto b = arange<float>(6).view({3, 2});
  const Values want = {10, 13, 28, 40};
  auto out = zeros<float>({2, 2});
  EXPECT_EQ(matmul_out(out, a, b).to_vector(), want);
  auto wide = zeros<float>({2, 2, 2});
  matmul_out(wide.select(2, 1), a, b);
  EXPECT_EQ(wide.to_vector(), (Values{0, 10, 0, 13, 0, 28, 0, 40}));
  auto turned = zeros<float>({2, 2});
  matmul_out(turned.t(), a, b);
  EXPECT_EQ(turned.to_vector(), (Values{10, 28, 13, 40}));
  auto square = from_data<float>({1, 2, 3, 4}, {2, 2});  // out is both operands
  matmul_out(square, square, square);
  EXPECT_EQ(square.to_vector(), (Values{7, 10, 15, 22}));
  EXPECT_THROW(matmul_out(out.expand({3, 2, 2}), a.expand({3, 2, 3}), b), ShapeError);
  EXPECT_THROW(matmul_out(zeros<float>({2, 3}), a, b), ShapeError);
}

TEST(Matmul, EmptyIsZeros) {
  EXPECT_EQ(matmul(zeros<float>({2, 0}), zeros<float>({0, 3})).to_vector(), Values(6, 0.0F));
  EXPECT_EQ(matmul(zeros<float>({0}), zeros<float>({0})).item(), 0.0F);
  EXPECT_EQ(matmul(zeros<half>({2, 0}), zeros<half>({0, 1})).numel(), 2);
  EXPECT_EQ(matmul(zeros<int32_t>({1, 0}), zeros<int32_t>({0, 1})).item(), 0);
  EXPECT_EQ(matmul(zeros<float>({0, 2, 3}), zeros<float>({3, 4})).shape(), (Shape{0, 2, 4}));
  EXPECT_EQ(linear(zeros<float>({0, 4}), zeros<float>({3, 4})).shape(), (Shape{0, 3}));
  const auto bias = from_data<float>({1, 2});
  EXPECT_EQ(linear(zeros<float>({1, 0}), zeros<float>({2, 0}), bias).to_vector(), (Values{1, 2}));
}

TEST(Matmul, NanAndInfinityPropagate) {
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(matmul(from_data<float>({0, nan}), zeros<float>({2})).item()));
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(matmul(from_data<float>({0, inf}), zeros<float>({2})).item()));
}

// Sizes around the tiles of the float kernel, all combinations of operand order.
TEST(Matmul, FloatMatchesDouble) {
  Generator g(5);
  const std::vector<std::array<int64_t, 3>> sizes = {
      {4, 6, 1},      {5, 17, 3},    {6, 16, 8},   {7, 15, 400}, {97, 33, 385},
      {13, 1100, 20}, {200, 7, 770}, {64, 64, 64}, {3, 50, 9},   {50, 2, 9}};
  for (const auto& [m, n, k] : sizes)
    for (int order = 0; order < 8; ++order) {
      const auto a = (order & 1) != 0 ? rand<float>({k, m}, -1, 1, {}, g).t()
                                      : rand<float>({m, k}, -1, 1, {}, g);
      const auto b = (order & 2) != 0 ? rand<float>({n, k}, -1, 1, {}, g).t()
                                      : rand<float>({k, n}, -1, 1, {}, g);
      const auto out = (order & 4) != 0 ? zeros<float>({n, m}).t() : zeros<float>({m, n});
      matmul_out(out, a, b);
      const std::vector<double> want = matmul(a.to<double>(), b.to<double>()).to_vector();
      const Values got = out.to_vector();
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 2e-6 * static_cast<double>(k + 8))
            << m << ' ' << n << ' ' << k;
    }
}

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return concat("[", e.op(), "] ", e.message());
  }
  return "nothing thrown";
}

TEST(Matmul, ErrorsNameBothShapes) {
  const auto a = zeros<float>({2, 3});
  EXPECT_EQ(message_of([&] {
              matmul(a, zeros<float>({4, 5}));
            }),
            "[matmul] expected equal inner sizes, got (2, 3) and (4, 5)");
  EXPECT_EQ(message_of([&] {
              matmul(zeros<float>({2, 2, 3}), zeros<float>({3, 3, 4}));
            }),
            "[matmul] expected batches that broadcast, got (2, 2, 3) and (3, 3, 4)");
  EXPECT_EQ(message_of([&] { matmul(scalar(1.0F), a); }),
            "[matmul] expected operands of rank 1 or more, got () and (2, 3)");
  EXPECT_EQ(
      message_of([&] {
        linear(a, zeros<float>({5, 4}));
      }),
      "[linear] expected an input of shape (..., 4) for a weight of shape (5, 4), got (2, 3)");
  EXPECT_EQ(message_of([&] { linear(a, zeros<float>({3})); }),
            "[linear] expected a weight of shape (out, in), got (3)");
  EXPECT_EQ(message_of([&] {
              linear(a, zeros<float>({5, 3}), zeros<float>({4}));
            }),
            "[linear] expected a bias of shape (5) for a weight of shape (5, 3), got (4)");
  EXPECT_EQ(message_of([&] { matmul(Tensor<float>(), a); }),
            "[matmul] expected defined tensors, got an undefined one");
}

TEST(Matmul, SameBitsForAnyThreadCount) {
  Generator g(3);
  const auto a = rand<float>({300, 700}, -1, 1, {}, g);
  const auto b = rand<float>({700, 530}, -1, 1, {}, g);
  const auto h = a.to<bfloat16>();
  const int before = num_threads();
  std::vector<Values> results;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    results.push_back(matmul(a, b).to_vector());
    results.push_back(matmul(b.t(), a.t()).to_vector());
    results.push_back(matmul(h, h.t()).to<float>().to_vector());
  }
  set_num_threads(before);
  for (size_t i = 3; i < results.size(); ++i) EXPECT_EQ(results[i], results[i % 3]);
}

}  // namespace
}  // namespace gable
