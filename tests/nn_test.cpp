// SPDX-License-Identifier: Apache-2.0
// Modules: names, state dicts, modes, sharing, containers, initialisers.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "errors.hpp"
#include "gable/nn/nn.hpp"

namespace gable::nn {
namespace {

std::vector<double> values(const AnyTensor& t) {
  return t.to(DType::float64).as<double>().to_vector();
}

template <class List>
std::vector<std::string> names_of(const List& list) {
  std::vector<std::string> names;
  for (const auto& entry : list) names.push_back(entry.first);
  return names;
}

template <class T>
struct Net : Module<T> {
  Linear<T> fc1{4, 6};
  BatchNorm1d<T> norm{6};
  Dropout<T> drop{0.5};
  Linear<T> fc2{6, 3, false};
  Net() {
    this->register_module("fc1", fc1);
    this->register_module("norm", norm);
    this->register_module("drop", drop);
    this->register_module("fc2", fc2);
  }
  Variable<T> forward(const Variable<T>& x) override { return fc2(drop(relu(norm(fc1(x))))); }
};

struct Outer : Module<float> {
  Net<float> body;
  Parameter<float> scale{ones<float>({1})};
  Outer() {
    register_module("body", body);
    register_parameter("scale", scale);
  }
};

TEST(Module, Names) {
  Outer m;
  const std::vector<std::string> parameters = {"scale",          "body.fc1.weight",
                                               "body.fc1.bias",  "body.norm.weight",
                                               "body.norm.bias", "body.fc2.weight"};
  EXPECT_EQ(names_of(m.named_parameters()), parameters);
  const std::vector<std::string> buffers = {"body.norm.running_mean", "body.norm.running_var",
                                            "body.norm.num_batches_tracked"};
  EXPECT_EQ(names_of(m.named_buffers()), buffers);
  const std::vector<std::string> modules = {"",          "body",      "body.fc1",
                                            "body.norm", "body.drop", "body.fc2"};
  EXPECT_EQ(names_of(m.named_modules()), modules);
  EXPECT_EQ(m.num_parameters(), 1 + 4 * 6 + 6 + 6 + 6 + 6 * 3);
  EXPECT_EQ(m.state_dict().size(), 9U);
  const std::string text = to_string(m);
  EXPECT_HAS(text, "(fc1): Linear(4, 6)\n");
  EXPECT_HAS(text, "(fc2): Linear(6, 3, no bias)\n");
  EXPECT_HAS(text, "61 parameters\n");
}

TEST(Module, RefusesBadNames) {
  struct Bad : Module<float> {
    Linear<float> a{1, 1};
    explicit Bad(const std::string& name) {
      register_module("a", a);
      register_module(name, a);
    }
  };
  EXPECT_THROW(Bad("a"), Error);
  EXPECT_THROW(Bad("x.y"), Error);
  EXPECT_THROW(Bad(""), Error);
}

TEST(Module, StateDictRoundTrip) {
  Net<bfloat16> a;
  Net<bfloat16> b;
  (void)a(Variable<bfloat16>(randn<bfloat16>({8, 4})));  // moves the running statistics
  const StateDict dict = a.state_dict();
  EXPECT_EQ(dict.find("fc1.weight")->dtype(), DType::float32);  // masters
  EXPECT_EQ(dict.find("norm.num_batches_tracked")->as<int64_t>().item(), 1);
  b.load_state_dict(dict);
  const StateDict copy = b.state_dict();
  for (const auto& [name, tensor] : dict) {
    const AnyTensor& other = *copy.find(name);
    EXPECT_EQ(values(tensor), values(other)) << name;
    EXPECT_FALSE(may_share_memory(tensor, other)) << name;
  }
  EXPECT_EQ(b.fc1.weight.value()(2, 1), bfloat16(a.fc1.weight.master()(2, 1)));
  a.eval();
  b.eval();
  const Variable<bfloat16> x(randn<bfloat16>({3, 4}));
  EXPECT_EQ(values(a(x).value()), values(b(x).value()));
}

TEST(Module, LoadConvertsFloatTypes) {
  Linear<float> a(3, 2);
  Linear<double> b(3, 2);
  Linear<half> c(3, 2);
  b.load_state_dict(a.state_dict());
  c.load_state_dict(b.state_dict());
  EXPECT_EQ(b.weight.value()(1, 2), static_cast<double>(a.weight.value()(1, 2)));
  EXPECT_EQ(c.weight.master()(1, 2), a.weight.value()(1, 2));
  EXPECT_EQ(c.weight.value()(1, 2), half(a.weight.value()(1, 2)));
}

TEST(Module, StrictLoadListsEverythingAndChangesNothing) {
  Net<float> m;
  const std::vector<double> before = values(m.fc1.bias.value());
  StateDict dict;
  dict.add("fc1.weight", zeros<float>({4, 6}));
  dict.add("fc1.bias", ones<float>({6}));
  dict.add("norm.weight", ones<int64_t>({6}));
  dict.add("norm.bias", zeros<float>({6}));
  dict.add("head.weight", zeros<float>({1}));
  const std::string text = error_of<Error>([&] { m.load_state_dict(dict); });
  EXPECT_HAS(text, "[load_state_dict]");
  EXPECT_HAS(text, "missing:\n    norm.running_mean\n    norm.running_var");
  EXPECT_HAS(text, "fc2.weight");
  EXPECT_HAS(text, "unexpected:\n    head.weight");
  EXPECT_HAS(text, "fc1.weight: expected (6, 4), got (4, 6)");
  EXPECT_HAS(text, "norm.weight: expected float32, got int64");
  EXPECT_EQ(values(m.fc1.bias.value()), before);
  // Shapes must fit without strict, too.
  EXPECT_THROW(m.load_state_dict(dict, {.strict = false}), Error);
  EXPECT_EQ(values(m.fc1.bias.value()), before);
}

TEST(Module, LooseLoadReportsNames) {
  Net<float> m;
  StateDict dict;
  dict.add("fc1.bias", ones<float>({6}));
  dict.add("head.weight", zeros<float>({1}));
  const LoadResult r = m.load_state_dict(dict, {.strict = false});
  EXPECT_EQ(r.missing.size(), 7U);
  EXPECT_EQ(r.unexpected, std::vector<std::string>{"head.weight"});
  EXPECT_EQ(m.fc1.bias.value()(3), 1.0F);
}

TEST(Module, TrainAndEval) {
  Outer m;
  EXPECT_TRUE(m.training());
  m.eval();
  for (const auto& [name, child] : m.named_modules()) EXPECT_FALSE(child->training()) << name;
  const Variable<float> x(randn<float>({5, 4}));
  EXPECT_EQ(values(m.body(x).value()), values(m.body(x).value()));
  EXPECT_EQ(m.body.norm.num_batches_tracked.item(), 0);
  m.train();
  EXPECT_TRUE(m.body.drop.training());
  EXPECT_NE(values(m.body(x).value()), values(m.body(x).value()));
  EXPECT_EQ(m.body.norm.num_batches_tracked.item(), 2);
}

TEST(Module, ApplyVisitsChildrenFirst) {
  Outer m;
  std::vector<std::string> seen;
  m.apply([&](AnyModule& module) {
    seen.push_back(module.describe());
    if (auto* d = dynamic_cast<Dropout<float>*>(&module)) d->probability = 0.25;
  });
  EXPECT_EQ(seen.size(), 6U);
  EXPECT_EQ(seen.front(), "Linear(4, 6)");
  EXPECT_EQ(seen.back(), "Module");
  EXPECT_EQ(m.body.drop.probability, 0.25);
}

TEST(Module, GradientsReachEveryParameterAndZeroGradDropsThem) {
  Net<float> m;
  const auto y = m(Variable<float>(randn<float>({8, 4})));
  y.backward(ones<float>({8, 3}));
  for (const auto& [name, p] : m.named_parameters()) EXPECT_TRUE(p.gradient().defined()) << name;
  m.zero_grad(true);
  for (const float g : m.fc2.weight.grad().to_vector()) EXPECT_EQ(g, 0.0F);
  m.zero_grad();
  for (const auto& [name, p] : m.named_parameters()) EXPECT_FALSE(p.gradient().defined()) << name;
}

TEST(Module, SharedParameters) {
  struct Tied : Module<float> {
    Linear<float> a{3, 3};
    Linear<float> b{3, 3};
    Tied() {
      register_module("a", a);
      register_module("b", b);
      b.weight = a.weight;
    }
    Variable<float> forward(const Variable<float>& x) override { return b(a(x)); }
  };
  Tied m;
  EXPECT_EQ(m.num_parameters(), 9 + 3 + 3);
  EXPECT_EQ(m.parameters().size(), 3U);
  EXPECT_EQ(m.state_dict().size(), 4U);
  m(Variable<float>(ones<float>({1, 3}))).backward(ones<float>({1, 3}));
  EXPECT_EQ(values(m.a.weight.grad()), values(m.b.weight.grad()));
  m.to(kCpu);
  EXPECT_EQ(m.a.weight.node(), m.b.weight.node());
  Tied other;
  other.load_state_dict(m.state_dict());
  EXPECT_EQ(values(other.b.weight.value()), values(m.a.weight.value()));
}

TEST(Module, BaseForwardNamesTheModule) {
  Outer m;
  EXPECT_HAS(error_of<Error>([&] { (void)m(Variable<float>(ones<float>({1}))); }), "got Module");
}

TEST(Sequential, NestsAndNames) {
  Sequential<float> net;
  net.add<Linear>(4, 8);
  auto& inner = net.add<Sequential>();
  inner.add<ReLU>();
  inner.add<Linear<float>>(8, 8);
  inner.add("named", std::make_shared<Identity<float>>());
  net.add<Lambda>([](const Variable<float>& x) { return x * 2; });
  const std::vector<std::string> names = {"0.weight", "0.bias", "1.1.weight", "1.1.bias"};
  EXPECT_EQ(names_of(net.named_parameters()), names);
  EXPECT_EQ(net.size(), 3U);
  EXPECT_EQ(net(Variable<float>(ones<float>({2, 4}))).size(1), 8);
  EXPECT_THROW((void)net[3], IndexError);
  EXPECT_HAS(to_string(net), "  (1): Sequential\n    (0): ReLU\n    (1): Linear(8, 8)\n");
}

TEST(Layers, ActivationsAndNorms) {
  const Variable<float> x(from_data<float>({-1, 0, 2, 3}, {2, 2}));
  EXPECT_EQ(ReLU<float>()(x).value()(0, 0), 0.0F);
  EXPECT_NEAR(LeakyReLU<float>(0.1)(x).value()(0, 0), -0.1F, 1e-7F);
  EXPECT_NEAR(GELU<float>()(x).value()(1, 0), 1.9545F, 1e-4F);
  EXPECT_NEAR(GELU<float>(true)(x).value()(1, 0), 1.9546F, 1e-4F);
  EXPECT_NEAR(SiLU<float>()(x).value()(1, 0), 1.7616F, 1e-4F);
  EXPECT_NEAR(LayerNorm<float>({2})(x).value()(0, 1), 1.0F, 1e-4F);
  EXPECT_NEAR(RMSNorm<float>({2})(x).value()(0, 0), -std::sqrt(2.0F), 1e-5F);
  BatchNorm1d<float> no_affine(2, {.affine = false, .track_running_stats = false});
  EXPECT_TRUE(no_affine.state_dict().size() == 0);
  no_affine.eval();  // uses the batch's statistics all the same
  EXPECT_NEAR(no_affine(x).value()(0, 0), -1.0F, 1e-4F);
  EXPECT_HAS(error_of<Error>([&] { (void)BatchNorm2d<float>(2)(x); }), "(N, C, H, W), got (2, 2)");
}

TEST(Layers, Embedding) {
  Embedding<bfloat16> table(5, 3, 1);
  const auto indices = from_data<int64_t>({4, 1, 4, 0}, {2, 2});
  const Variable<bfloat16> y = table(indices);
  EXPECT_EQ(concat(y.shape()), "(2, 2, 3)");
  EXPECT_EQ(y.value()(0, 0, 2), table.weight.value()(4, 2));
  EXPECT_EQ(y.value()(0, 1, 2), bfloat16(0.0F));
  y.backward(ones<bfloat16>({2, 2, 3}));
  EXPECT_EQ(values(table.weight.grad().select(1, 0)), (std::vector<double>{1, 0, 0, 0, 2}));
  EXPECT_HAS(error_of<Error>([&] { (void)table.forward(Variable<bfloat16>(ones<bfloat16>({1}))); }),
             "got Embedding(5, 3)");
}

TEST(Layers, ConvolutionsPoolingSoftmax) {
  const Variable<float> x(randn<float>({2, 4, 9, 8}));
  Sequential<float> net;
  net.add<Conv2d>(4, 6, Size2d(3, 2), Conv2dLayerOptions{.stride = 2, .groups = 2});
  net.add<MaxPool2d>(2);
  net.add<Flatten>();
  net.add<Softmax>();
  const Variable<float> y = net(x);  // (2, 6, 4, 4), (2, 6, 2, 2), (2, 24)
  EXPECT_EQ(concat(y.shape()), "(2, 24)");
  double sum = 0;
  for (const double v : values(y.value().select(0, 1))) sum += v;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(net.num_parameters(), 6 * 2 * 3 * 2 + 6);
  EXPECT_HAS(to_string(net), "(0): Conv2d(4, 6, kernel 3x2, stride 2, groups 2)\n");
  EXPECT_EQ(
      concat(
          Conv1d<float>(4, 5, 3, {.padding = 1})(Variable<float>(randn<float>({2, 4, 7}))).shape()),
      "(2, 5, 7)");
  EXPECT_EQ(concat(ConvTranspose2d<float>(4, 3, 2, {.stride = 2})(x).shape()), "(2, 3, 18, 16)");
  EXPECT_EQ(concat(AvgPool2d<float>(2)(x).shape()), "(2, 4, 4, 4)");
  EXPECT_EQ(concat(AdaptiveAvgPool2d<float>(1)(x).shape()), "(2, 4, 1, 1)");
  EXPECT_NEAR(std::exp(LogSoftmax<float>(1)(y).value()(0, 0)), 1.0 / 24, 0.05);
  EXPECT_THROW(Conv2d<float>(4, 6, 3, {.groups = 4}), TypeError);
}

TEST(Init, DefaultBoundsArePyTorchs) {
  Generator g(1);
  const Linear<float> layer(100, 200, true, g);
  float most = 0;
  double square = 0;
  for (const float w : layer.weight.value().to_vector()) {
    most = std::max(most, std::abs(w));
    square += static_cast<double>(w) * static_cast<double>(w);
  }
  EXPECT_LE(most, 0.1F);
  EXPECT_GT(most, 0.0999F);
  EXPECT_NEAR(square / 20000, 0.01 / 3, 1e-4);
  for (const float b : layer.bias.value().to_vector()) EXPECT_LE(std::abs(b), 0.1F);
}

TEST(Init, Moments) {
  Generator g(2);
  const Tensor<float> w({64, 32, 3, 3}, kCpu, MemoryFormat::channels_last);
  auto std_of = [&] {
    double square = 0;
    for (const float v : w.to_vector()) square += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(square / static_cast<double>(w.numel()));
  };
  init::kaiming_normal_(w, {.fan = init::Fan::out}, g);
  EXPECT_NEAR(std_of(), std::sqrt(2.0 / (64 * 9)), 1e-3);
  init::kaiming_uniform_(w, {}, g);
  EXPECT_NEAR(std_of(), std::sqrt(2.0 / (32 * 9)), 1e-3);
  init::xavier_normal_(w, 2, g);
  EXPECT_NEAR(std_of(), 2 * std::sqrt(2.0 / (96 * 9)), 2e-3);
  init::xavier_uniform_(w, 1, g);
  EXPECT_NEAR(std_of(), std::sqrt(2.0 / (96 * 9)), 1e-3);
  init::trunc_normal_(w, 0, 1, -2, 2, g);
  EXPECT_NEAR(std_of(), 0.8796, 1e-2);  // of a unit normal cut at +-2
  for (const float v : w.to_vector()) ASSERT_LE(std::abs(v), 2.0F);
  init::constant_(w, 3);
  EXPECT_EQ(w(63, 31, 2, 2), 3.0F);
  EXPECT_THROW(init::kaiming_normal_(zeros<float>({3})), ShapeError);
}

TEST(Init, SameValuesInAnyLayoutAndMastersAreRounded) {
  Generator a(7);
  Generator b(7);
  const Tensor<float> rows({4, 3, 2, 2});
  const Tensor<float> last({4, 3, 2, 2}, kCpu, MemoryFormat::channels_last);
  init::normal_(rows, 0, 1, a);
  init::normal_(last, 0, 1, b);
  EXPECT_EQ(rows.to_vector(), last.to_vector());
  const Parameter<bfloat16> p(zeros<float>({5}));
  init::uniform_(p, -1, 1, a);
  EXPECT_EQ(p.value()(3), bfloat16(p.master()(3)));
}

TEST(Init, Orthogonal) {
  for (const Shape& shape : {Shape{3, 5}, Shape{6, 2, 2}}) {
    const Tensor<double> w(shape);
    init::orthogonal_(w, 2);
    const Tensor<double> m = w.reshape({shape[0], -1});
    const Tensor<double> product = m.size(0) < m.size(1) ? matmul(m, m.t()) : matmul(m.t(), m);
    for (int64_t i = 0; i < product.size(0); ++i)
      for (int64_t j = 0; j < product.size(1); ++j)
        EXPECT_NEAR(product(i, j), i == j ? 4.0 : 0.0, 1e-12);
  }
}

}  // namespace
}  // namespace gable::nn
