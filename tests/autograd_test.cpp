// SPDX-License-Identifier: Apache-2.0
// The backward engine: sums of gradients (G09), modes, errors, memory, depth, hooks, parameters.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>

#include "errors.hpp"
#include "gable/autograd/apply.hpp"
#include "gable/autograd/gradcheck.hpp"
#include "gable/memory/allocator.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/elementwise.hpp"

namespace gable {
namespace {

using V = Variable<float>;
using Floats = std::vector<float>;

Floats grad_of(const V& x) { return x.grad().to_vector(); }
V leaf(std::initializer_list<float> values, const Shape& shape) {
  return V(from_data<float>(values, shape), true);
}
void backward_ones(const V& y) { y.backward(ones_like(y.value())); }

TEST(Autograd, G09BroadcastGradientsAreSummed) {
  const V a = leaf({2}, {1});
  const V b(arange<float>(20).view({5, 4}), true);
  backward_ones(a * b);
  EXPECT_EQ(a.grad().shape(), (Shape{1}));
  EXPECT_EQ(grad_of(a), (Floats{190}));
  EXPECT_EQ(b.grad().shape(), (Shape{5, 4}));
  EXPECT_EQ(grad_of(b), Floats(20, 2.0F));

  const V u = leaf({1, 2, 3, 4}, {4, 1});
  const V v = leaf({10, 20, 30, 40}, {1, 4});
  backward_ones(u * v);
  EXPECT_EQ(u.grad().shape(), (Shape{4, 1}));
  EXPECT_EQ(grad_of(u), (Floats{100, 100, 100, 100}));
  EXPECT_EQ(v.grad().shape(), (Shape{1, 4}));
  EXPECT_EQ(grad_of(v), (Floats{10, 10, 10, 10}));
}

TEST(Autograd, G09ExpandSendsOnlyWhatArrives) {
  const V x = leaf({1}, {1});
  x.expand({100})[0].backward();
  EXPECT_EQ(grad_of(x), (Floats{1}));
  x.zero_grad();
  backward_ones(x.expand({100}));
  EXPECT_EQ(grad_of(x), (Floats{100}));
}

TEST(Autograd, G09SharedNodesRunOnceAfterAllTheirUsers) {
  const V x = leaf({1}, {1});
  const V a = leaf({1}, {1});
  const V p = x * a;
  const V q = x * x;
  const V f = x * p + q * a + x * p;
  EXPECT_EQ(f.item(), 3);
  f.backward();
  EXPECT_EQ(grad_of(x), (Floats{6}));
  EXPECT_EQ(grad_of(a), (Floats{3}));
}

TEST(Autograd, G09GradientsAccumulateUntilCleared) {
  const V x = leaf({3}, {1});
  (x * x).backward();
  (x * x).backward();
  EXPECT_EQ(grad_of(x), (Floats{12}));
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
  (x * x).backward();
  EXPECT_EQ(grad_of(x), (Floats{6}));
  const void* memory = x.grad().data();
  x.zero_grad(true);
  EXPECT_EQ(grad_of(x), (Floats{0}));
  (x * x).backward();
  EXPECT_EQ(x.grad().data(), memory);
}

// A node counts its backward runs.
struct CountedOp : OpBase {
  static constexpr const char* name = "counted";
  int* runs;
  explicit CountedOp(int* r) : runs(r) {}
  Tensor<float> forward(const Tensor<float>& x) { return x * 2; }
  Grads<1> backward(const Tensor<float>& dy) {
    ++*runs;
    return {dy * 2};
  }
};

TEST(Autograd, EachNodeRunsOnceInADiamond) {
  int runs = 0;
  const V x = leaf({1}, {1});
  V y = apply(CountedOp(&runs), x);
  V z = y;
  for (int i = 0; i < 20; ++i) z = z + z;  // 2^20 paths
  z.backward();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(grad_of(x), (Floats{2.0F * (1 << 20)}));
}

struct TwoInputOp : OpBase {
  static constexpr const char* name = "two_input";
  bool* asked;
  bool wrong_shape = false;
  explicit TwoInputOp(bool* a, bool wrong = false) : asked(a), wrong_shape(wrong) {}
  Tensor<float> forward(const Tensor<float>& x, const Tensor<float>& y) { return x + y; }
  Grads<2> backward(const Tensor<float>& dy) {
    asked[0] = needs(0);
    asked[1] = needs(1);
    if (wrong_shape) return {zeros<float>({7}), AnyTensor()};
    return {dy.any(), AnyTensor()};  // none for the second
  }
};

TEST(Autograd, UserOperators) {
  bool asked[2] = {};
  const V x = leaf({1, 2}, {2});
  const V y = leaf({1, 2}, {2});
  backward_ones(apply(TwoInputOp(asked), x, V(y.value())));
  EXPECT_TRUE(asked[0]);
  EXPECT_FALSE(asked[1]);
  backward_ones(apply(TwoInputOp(asked), x, y));
  EXPECT_TRUE(asked[1]);
  EXPECT_EQ(grad_of(x), (Floats{2, 2}));
  EXPECT_FALSE(y.grad().defined());
  const std::string error =
      error_of<Error>([&] { backward_ones(apply(TwoInputOp(asked, true), x, y)); });
  EXPECT_HAS(error, "[two_input]");
  EXPECT_HAS(error, "(2)");
  EXPECT_HAS(error, "(7)");
  EXPECT_FALSE(apply(TwoInputOp(asked), x.value(), y.value()).defined() == false);
}

TEST(Autograd, NoGradDetachAndConstantsRecordNothing) {
  const V x = leaf({2}, {1});
  EXPECT_TRUE(x.requires_grad());
  EXPECT_FALSE(V(ones<float>({1})).requires_grad());
  EXPECT_FALSE((V(ones<float>({1})) * 2).requires_grad());
  {
    const NoGrad no_grad;
    EXPECT_FALSE(grad_enabled());
    EXPECT_FALSE((x * x).requires_grad());
    const EnableGrad again;
    EXPECT_TRUE((x * x).requires_grad());
  }
  EXPECT_TRUE(grad_enabled());
  const V half_way = x * x;
  (half_way.detach() * x).backward();
  EXPECT_EQ(grad_of(x), (Floats{4}));
}

TEST(Autograd, GradModeIsPerThread) {
  const NoGrad no_grad;
  bool inside = false;
  std::thread([&] { inside = grad_enabled(); }).join();
  EXPECT_TRUE(inside);
  EXPECT_FALSE(grad_enabled());
}

TEST(Autograd, ThreadsBuildAndRunTheirOwnGraphs) {
  std::vector<std::thread> threads;
  std::vector<float> results(8);
  for (size_t t = 0; t < results.size(); ++t)
    threads.emplace_back([&results, t] {
      const V x = leaf({static_cast<float>(t)}, {1});
      for (int i = 0; i < 50; ++i) (x * x).backward();
      results[t] = x.grad().item();
    });
  for (std::thread& t : threads) t.join();
  for (size_t t = 0; t < results.size(); ++t) EXPECT_EQ(results[t], 100.0F * static_cast<float>(t));
}

TEST(Autograd, BackwardTwiceNeedsRetainGraph) {
  const V x = leaf({3}, {1});
  const V y = x * x;
  y.backward();
  EXPECT_EQ(grad_of(x), (Floats{6}));
  const std::string error = error_of<Error>([&] { y.backward(); });
  EXPECT_HAS(error, "[mul]");
  EXPECT_HAS(error, "retain_graph");
  EXPECT_EQ(grad_of(x), (Floats{6}));

  const V z = x * x;
  z.backward({}, {.retain_graph = true});
  z.backward();
  EXPECT_EQ(grad_of(x), (Floats{18}));
}

TEST(Autograd, WritingASavedTensorIsFound) {
  const V x = leaf({1, 2}, {2});
  const V y = x * x;
  x.value().fill_(5);
  std::string error = error_of<Error>([&] { backward_ones(y); });
  EXPECT_HAS(error, "[mul]");
  EXPECT_HAS(error, "in place");
  EXPECT_HAS(error, "(2)");
  EXPECT_FALSE(x.grad().defined());

  const V t = tanh(x);                // saves its output
  t.value().narrow(0, 0, 1).zero_();  // through a view of it
  error = error_of<Error>([&] { backward_ones(t); });
  EXPECT_HAS(error, "[tanh]");

  const V s = x + x;  // saves nothing
  s.value().zero_();
  x.value().zero_();
  EXPECT_NO_THROW(backward_ones(s));
}

TEST(Autograd, MisuseIsNamed) {
  const V constant(ones<float>({2}));
  EXPECT_HAS(error_of<Error>([&] { constant.backward(); }), "[backward]");
  const V x = leaf({1, 2}, {2});
  EXPECT_HAS(error_of<Error>([&] { (x * x).backward(); }), "one element");
  EXPECT_HAS(error_of<Error>([&] { (x * x).backward(ones<float>({3})); }), "(3)");
  EXPECT_HAS(error_of<Error>([&] { (void)(x * x).grad(); }), "the output of mul");
  EXPECT_HAS(error_of<Error>([&] { (void)constant.grad(); }), "a constant");
  EXPECT_HAS(error_of<Error>([&] { x.set_grad(ones<float>({3})); }), "[set_grad]");
  EXPECT_HAS(error_of<Error>([&] { (void)Variable<int32_t>(ones<int32_t>({2}), true); }), "int32");
  EXPECT_HAS(error_of<Error>([&] { (void)V(Tensor<float>(), true); }), "undefined");
  EXPECT_HAS(error_of<Error>([&] { (void)(V() * x); }), "[mul]");
}

TEST(Autograd, HooksSeeAndReplaceGradients) {
  const V x = leaf({1, 2}, {2});
  int calls = 0;
  x.set_grad_hook([&](AnyTensor& g) {
    ++calls;
    g = (g.as<float>() * 3).any();
  });
  backward_ones(x * x);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(grad_of(x), (Floats{6, 12}));
  x.set_grad_hook([](AnyTensor& g) { g = zeros<float>({5}).any(); });
  EXPECT_HAS(error_of<Error>([&] { backward_ones(x * x); }), "(5)");
  EXPECT_EQ(grad_of(x), (Floats{6, 12}));
}

TEST(Autograd, GradientsDoNotAliasEachOther) {
  const V a = leaf({1}, {1});
  const V b = leaf({1}, {1});
  const auto dy = ones<float>({1});
  (a + b).backward(dy);
  a.grad().fill_(9);
  EXPECT_EQ(grad_of(b), (Floats{1}));
  EXPECT_EQ(dy.item(), 1);
}

TEST(Autograd, DeepGraphsDoNotRecurse) {
  constexpr int kDepth = 100000;
  const V x = leaf({1}, {1});
  {
    V y = x;
    for (int i = 0; i < kDepth; ++i) y = y + 1;
    y.backward();
    EXPECT_EQ(grad_of(x), (Floats{1}));
  }
  {
    V y = x;
    for (int i = 0; i < kDepth; ++i) y = y * 1;
  }  // destroyed without backward
  V y = x;
  for (int i = 0; i < kDepth; ++i) y = i % 2 == 0 ? y + y : y * 0.5F;  // two edges a node
  y.backward();
  EXPECT_EQ(grad_of(x), (Floats{2}));
}

TEST(Autograd, SavedTensorsGoWhileBackwardRuns) {
  constexpr int64_t kElements = 1 << 18;
  constexpr int kLayers = 16;
  constexpr int64_t kBytes = kElements * 4;
  const int64_t before = cpu_allocator().stats().bytes_in_use;
  const V x(full<float>({kElements}, 0.5F), true);
  V y = x;
  for (int i = 0; i < kLayers; ++i) y = tanh(y);
  const int64_t recorded = cpu_allocator().stats().bytes_in_use;
  EXPECT_GE(recorded - before, (kLayers + 1) * kBytes);
  cpu_allocator().reset_peak();
  const auto dy = ones<float>({kElements});
  y.backward(dy);
  // x, y, dy and x's gradient are left, though y still holds the graph's root.
  EXPECT_LE(cpu_allocator().stats().bytes_in_use - before, 4 * kBytes + 4096);
  EXPECT_LE(cpu_allocator().stats().peak_bytes, recorded + 4 * kBytes);
}

TEST(Autograd, SecondStepAsksTheSystemForNothing) {
  const V x(full<float>({1000}, 0.5F), true);
  auto step = [&] {
    x.zero_grad();
    backward_ones(tanh(x * x) + sigmoid(x));
  };
  step();
  const int64_t requests = cpu_allocator().stats().system_requests;
  for (int i = 0; i < 3; ++i) step();
#ifndef __SANITIZE_ADDRESS__
  EXPECT_EQ(cpu_allocator().stats().system_requests, requests);
#else
  (void)requests;  // nothing is cached there
#endif
}

TEST(Autograd, CastNodesChangeTheDtypeOfGradients) {
  const V x = leaf({1, 2}, {2});
  const Variable<bfloat16> low = cast<bfloat16>(x);
  const V back = cast<float>(low * low);
  backward_ones(back);
  EXPECT_EQ(x.grad().dtype(), DType::float32);
  EXPECT_EQ(grad_of(x), (Floats{2, 4}));
}

TEST(Autograd, SmallFloatParametersHaveFloatMastersAndGradients) {
  const Parameter<bfloat16> w(from_data<float>({1.001F, -2}, {2}));
  EXPECT_EQ(w.master().to_vector(), (Floats{1.001F, -2}));
  EXPECT_EQ(static_cast<float>(w.value()(0)), 1.0F);  // rounded
  const Variable<bfloat16> y = w * w;
  y.backward(ones<bfloat16>({2}));
  static_assert(std::is_same_v<decltype(w.grad()), Tensor<float>>);
  EXPECT_EQ(w.grad().to_vector(), (Floats{2, -4}));
  // Small gradients add up in float where bfloat16 would lose them.
  w.zero_grad();
  for (int i = 0; i < 300; ++i) (w * 1).backward(full<bfloat16>({2}, bfloat16(1.0F)));
  EXPECT_EQ(w.grad().to_vector(), (Floats{300, 300}));
  // The optimizer changes the master; refresh rounds it into the compute copy.
  const AnyParameter any = w.any();
  any.master().as<float>().fill_(3);
  any.refresh();
  EXPECT_EQ(static_cast<float>(w.value()(1)), 3.0F);
  w.assign(from_data<double>({5, 6}, {2}));
  EXPECT_EQ(w.master().to_vector(), (Floats{5, 6}));
  EXPECT_EQ(static_cast<float>(w.value()(1)), 6.0F);
  EXPECT_HAS(error_of<Error>([&] { w.assign(zeros<float>({3})); }), "(3)");

  const Parameter<float> plain(ones<float>({2}));
  EXPECT_TRUE(plain.master().any().storage() == plain.value().any().storage());
  EXPECT_TRUE(plain.any() == Parameter<float>(plain).any());
}

struct CubeOp : OpBase {  // its backward is wrong on purpose
  static constexpr const char* name = "cube";
  Saved<double> saved;
  Tensor<double> forward(const Tensor<double>& x) {
    saved.save(x);
    return x * x * x;
  }
  Grads<1> backward(const Tensor<double>& dy) {
    return {dy * saved.get(name) * saved.get(name) * 2};
  }
};

TEST(Autograd, GradcheckFindsAWrongGradient) {
  const auto x = from_data<double>({1, 2}, {2});
  const auto f = [](const std::vector<Variable<double>>& in) { return apply(CubeOp(), in[0]); };
  const GradcheckResult r = gradcheck(f, {x});
  EXPECT_FALSE(r.ok);
  EXPECT_HAS(r.message, "element 1");
  EXPECT_EQ(x.to_vector(), (std::vector<double>{1, 2}));
}

}  // namespace
}  // namespace gable
