// SPDX-License-Identifier: Apache-2.0
// Indexing and sorting beyond the shared cases: errors, dtypes, order, threads.
#include <gtest/gtest.h>

#include <limits>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/ops/index.hpp"
#include "gable/ops/sort.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
using F = std::vector<float>;
using I = std::vector<int64_t>;

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const IndexError& e) {
    return "[" + e.op() + "] " + e.message();
  }
  return "no IndexError";
}

TEST(Indexing, BadIndicesNameThePosition) {
  const auto x = arange<float>(0, 6).view({2, 3});
  EXPECT_EQ(message_of([&] {
              (void)gather(x, 0, from_data<int64_t>({0, 1, 2}, {1, 3}));
            }),
            "[gather] expected indices in [0, 2), got 2 at position (0, 2)");
  EXPECT_EQ(message_of([&] {
              (void)index_select(x, 1, from_data<int64_t>({0, -1}));
            }),
            "[index_select] expected indices in [0, 3), got -1 at position (1)");
  EXPECT_EQ(message_of([&] { (void)embedding(x, scalar<int64_t>(5)); }),
            "[embedding] expected indices in [0, 2), got 5 at position ()");
  EXPECT_EQ(message_of([&] {
              (void)one_hot(from_data<int64_t>({0, 4}), 4);
            }),
            "[one_hot] expected indices in [0, 4), got 4 at position (1)");
  const auto y = x.clone();
  EXPECT_THROW((void)scatter_add_(y, 0, from_data<int64_t>({0, 9, 0}, {1, 3}), x), IndexError);
  EXPECT_EQ(y.to_vector(), x.to_vector());  // nothing was written
}

TEST(Indexing, BadShapes) {
  const auto x = arange<float>(0, 6).view({2, 3});
  const auto row = zeros<int64_t>({3});
  EXPECT_THROW((void)gather(x, 0, row), ShapeError);
  EXPECT_THROW((void)gather(x, 0, zeros<int64_t>({1, 4})), ShapeError);
  EXPECT_THROW((void)scatter_add(x, 0, zeros<int64_t>({3, 3}), x), ShapeError);
  EXPECT_THROW((void)index_select(x, 0, zeros<int64_t>({1, 1})), ShapeError);
  EXPECT_THROW((void)index_select(x, 2, row), IndexError);
  EXPECT_THROW((void)embedding(zeros<float>({3}), row), ShapeError);
  EXPECT_THROW((void)embedding(x, row, 2), IndexError);
  EXPECT_THROW((void)one_hot(row, 0), ShapeError);
  EXPECT_THROW((void)topk(x, 4), ShapeError);
  EXPECT_THROW((void)topk(scalar<float>(1), 0), ShapeError);
  EXPECT_THROW((void)sort(x, 2), IndexError);
}

TEST(Indexing, EveryDtype) {
  const auto at = from_data<int64_t>({2, 0});
  EXPECT_EQ(index_select(from_data<bool>({true, false, false}), 0, at).to_vector(),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(gather(from_data<uint8_t>({7, 8, 9}), 0, at).to_vector(), (std::vector<uint8_t>{9, 7}));
  EXPECT_EQ(scatter_add(from_data<int64_t>({1, 1, 1}), 0, from_data<int64_t>({2, 2}),
                        from_data<int64_t>({5, 6}))
                .to_vector(),
            (I{1, 1, 12}));
  EXPECT_EQ(one_hot(at, 3).to_vector(), (I{0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(one_hot<float>(scalar<int64_t>(1), 2).to_vector(), (F{0, 1}));
  EXPECT_EQ(gather(scalar<float>(3), 0, scalar<int64_t>(0)).item(), 3);
}

TEST(Indexing, SixteenBitSumsInFloat) {
  const auto src = full<bfloat16>({1000}, bfloat16(1));
  const auto zero = zeros<int64_t>({1000});
  EXPECT_EQ(static_cast<float>(scatter_add(zeros<bfloat16>({1}), 0, zero, src).item()), 1000);
  Variable<bfloat16> w(zeros<bfloat16>({2, 1}), true);
  embedding(w, zero).backward(full<bfloat16>({1000, 1}, bfloat16(1)));
  EXPECT_EQ(w.grad().to_vector(), (F{1000, 0}));
}

TEST(Embedding, PaddingRowHasNoGradient) {
  Variable<float> w(ones<float>({3, 2}), true);
  embedding(w, from_data<int64_t>({0, 2, 2, 1}), -1).backward(ones<float>({4, 2}));
  EXPECT_EQ(w.grad().to_vector(), (F{1, 1, 1, 1, 0, 0}));
}

TEST(Indexing, SameBitsForAnyNumberOfThreads) {
  const int threads = num_threads();
  Generator g(3);
  const auto src = randn<float>({5000, 33}, 0, 1, {}, g);
  const auto index = randint<int64_t>(0, 10, {5000, 33}, {}, g);
  F want;
  for (const int n : {1, 2, 4}) {
    set_num_threads(n);
    F got = scatter_add(zeros<float>({10, 33}), 0, index, src).to_vector();
    Variable<float> w(zeros<float>({10, 33}), true);
    embedding(w, index.select(1, 0)).backward(src);
    for (const float v : w.grad().to_vector()) got.push_back(v);
    for (const float v : sort(src, 0).values.to_vector()) got.push_back(v);
    if (n == 1) want = got;
    EXPECT_EQ(got, want) << n;
  }
  set_num_threads(threads);
}

TEST(Sort, StableWithNanLast) {
  const auto x = from_data<float>({2, kNan, 1, 2, -0.0F, 0, kNan, 1});
  EXPECT_EQ(argsort(x).to_vector(), (I{4, 5, 2, 7, 0, 3, 1, 6}));
  EXPECT_EQ(argsort(x, 0, true).to_vector(), (I{0, 3, 2, 7, 4, 5, 1, 6}));
  EXPECT_EQ(topk(x, 3).indices.to_vector(), (I{0, 3, 2}));
  EXPECT_EQ(topk(x, 2, 0, false).values.to_vector(), (F{-0.0F, 0}));
  EXPECT_EQ(sort(from_data<uint8_t>({3, 1, 2})).values.to_vector(),
            (std::vector<uint8_t>{1, 2, 3}));
  EXPECT_EQ(sort(scalar<float>(4)).values.item(), 4);
  EXPECT_EQ(sort(Tensor<float>({0, 3}), 0).values.shape(), (Shape{0, 3}));
  EXPECT_EQ(topk(x, 0).values.numel(), 0);
}

TEST(Sort, GradientGoesToTheSource) {
  Variable<float> x(from_data<float>({3, 1, 2}), true);
  sort(x).values.backward(from_data<float>({10, 20, 30}));
  EXPECT_EQ(x.grad().to_vector(), (F{30, 10, 20}));
  x.zero_grad();
  topk(x, 1).values.backward(from_data<float>({5}));
  EXPECT_EQ(x.grad().to_vector(), (F{5, 0, 0}));
}

}  // namespace
}  // namespace gable
