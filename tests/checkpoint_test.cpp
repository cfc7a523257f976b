// SPDX-License-Identifier: Apache-2.0
// checkpoint(): same values and gradients, less memory, repeated dropout.
#include "gable/autograd/checkpoint.hpp"

#include <gtest/gtest.h>

#include "gable/memory/allocator.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/elementwise.hpp"

namespace gable {
namespace {

using V = Variable<float>;

V block(const V& x, const V& w) { return tanh(x * w) + sigmoid(x); }

TEST(Checkpoint, SameValuesAndGradientsAsWithout) {
  const auto values = rand<float>({3, 4});
  const auto weights = rand<float>({4});
  const V x1(values, true);
  const V w1(weights, true);
  const V x2(values, true);
  const V w2(weights, true);
  const V y1 = block(x1, w1) * 2;
  int runs = 0;
  const V y2 = checkpoint(
                   [&runs](const V& x, const V& w) {
                     ++runs;
                     return block(x, w);
                   },
                   x2, w2) *
               2;
  EXPECT_EQ(y1.value().to_vector(), y2.value().to_vector());
  EXPECT_EQ(runs, 1);
  y1.backward(ones<float>({3, 4}));
  y2.backward(ones<float>({3, 4}));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(x1.grad().to_vector(), x2.grad().to_vector());
  EXPECT_EQ(w1.grad().to_vector(), w2.grad().to_vector());
}

TEST(Checkpoint, CapturedParametersCollectGradients) {
  const Parameter<float> w(full<float>({2}, 3));
  const V constant(ones<float>({2}));  // as images are
  const V y = checkpoint([&](const V& x) { return x * w; }, constant);
  EXPECT_TRUE(y.requires_grad());
  y.backward(full<float>({2}, 5));
  EXPECT_EQ(w.grad().to_vector(), (std::vector<float>{5, 5}));
}

TEST(Checkpoint, NestedAndChained) {
  const V x(full<float>({2}, 0.5F), true);
  const auto inner = [](const V& v) { return v * v; };
  const V y = checkpoint([&](const V& v) { return checkpoint(inner, v) * v; }, x);
  checkpoint(inner, y).backward(ones<float>({2}));  // x^6
  EXPECT_NEAR(x.grad().to_vector()[0], 6 * 0.03125F, 1e-6F);
}

TEST(Checkpoint, DropoutRepeatsItsDraws) {
  manual_seed(11);
  const V x(ones<float>({1000}), true);
  const V y = checkpoint([](const V& v) { return dropout(v, 0.5); }, x);
  const Generator::State after = default_generator().state();
  (void)rand<float>({100});  // the loop goes on drawing
  const Generator::State later = default_generator().state();
  y.backward(ones<float>({1000}));
  EXPECT_EQ(x.grad().to_vector(), y.value().to_vector());  // the same mask
  EXPECT_TRUE(default_generator().state() == later);
  EXPECT_FALSE(after == later);
}

TEST(Checkpoint, KeepsNoActivations) {
  constexpr int64_t kElements = 1 << 16;
  const auto chain = [](const V& v) {
    V y = v;
    for (int i = 0; i < 12; ++i) y = tanh(y);
    return y;
  };
  const V x(full<float>({kElements}, 0.5F), true);
  const int64_t before = cpu_allocator().stats().bytes_in_use;
  const V y = checkpoint(chain, x);
  EXPECT_LE(cpu_allocator().stats().bytes_in_use - before, kElements * 4 + 4096);
  y.backward(ones<float>({kElements}));
  EXPECT_LE(cpu_allocator().stats().bytes_in_use - before, 2 * kElements * 4 + 4096);
}

TEST(Checkpoint, ModesErrorsAndTypes) {
  const V x(ones<float>({2}), true);
  const auto square = [](const V& v) { return v * v; };
  {
    const NoGrad no_grad;
    EXPECT_FALSE(checkpoint(square, x).requires_grad());
  }
  const V y = checkpoint(square, x);
  y.backward(ones<float>({2}));
  EXPECT_THROW(y.backward(ones<float>({2})), Error);
  const V z = checkpoint(square, x);
  z.backward(ones<float>({2}), {.retain_graph = true});
  z.backward(ones<float>({2}));
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{6, 6}));

  const V w = checkpoint(square, x);
  x.value().fill_(2);  // the input that the second run needs
  try {
    w.backward(ones<float>({2}));
    ADD_FAILURE() << "nothing thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.op(), "checkpoint");
  }
  EXPECT_THROW((void)checkpoint(square, V()), ShapeError);

  // Integer inputs are constants; the result may have another dtype.
  x.zero_grad();
  const auto mixed = checkpoint(
      [](const V& v, const Variable<int64_t>& k) {
        return cast<double>(v * static_cast<float>(k.value().item()));
      },
      x, scalar<int64_t>(3));
  mixed.backward(ones<double>({2}));
  EXPECT_EQ(x.grad().to_vector(), (std::vector<float>{3, 3}));
}

}  // namespace
}  // namespace gable
