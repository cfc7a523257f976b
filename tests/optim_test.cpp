// SPDX-License-Identifier: Apache-2.0
// Optimizers against sequences of PyTorch 1.13 (float64), groups, masters, saved state, clipping.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "gable/core/parallel.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/optim/clip.hpp"
#include "gable/optim/sgd.hpp"
#include "gable/tensor/random.hpp"

namespace gable::optim {
namespace {

using Sequence = std::vector<double>;

template <class T>
void set_gradient(const Parameter<T>& p, const std::vector<double>& g) {
  Tensor<Compute<T>> gradient(p.shape());
  for (size_t i = 0; i < g.size(); ++i) gradient.data()[i] = static_cast<Compute<T>>(g[i]);
  p.set_grad(gradient);
}

const std::vector<std::vector<double>> kGradients = {
    {0.5, -1.0, 2.0}, {0.25, 0.75, -1.5}, {-0.125, 1.0, 0.5}, {1.0, -0.5, 0.25}};

// The parameter after each of four updates from [1, -2, 0.5].
template <class T, class Optim, class Options>
Sequence run(const Options& options, double gradient_factor = 1) {
  const Parameter<T> p(from_data<Compute<T>>({1, -2, 0.5}));
  Optim optimizer({p.any()}, options);
  Sequence out;
  for (std::vector<double> g : kGradients) {
    for (double& v : g) v *= gradient_factor;
    set_gradient(p, g);
    optimizer.step(1 / gradient_factor);
    for (Compute<T> v : p.master().to_vector()) out.push_back(v);
    EXPECT_EQ(p.value().to_vector(), p.master().template to<T>().to_vector());
  }
  return out;
}

template <class Optim, class Options>
void expect_sequence(const Options& options, const Sequence& expected) {
  auto compare = [&](const Sequence& got, double tolerance, const char* what) {
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], tolerance) << what << " value " << i;
  };
  compare(run<double, Optim>(options), 1e-12, "double");
  compare(run<float, Optim>(options), 2e-6, "float");
  compare(run<bfloat16, Optim>(options), 2e-6, "bfloat16 master");
  compare(run<half, Optim>(options, 1024), 2e-6, "half master, scaled gradient");
}

TEST(SGD, Plain) {
  expect_sequence<SGD>(SGDOptions{.lr = 0.1}, {0.95, -1.9, 0.3, 0.925, -1.975, 0.45, 0.9375, -2.075,
                                               0.4, 0.8375, -2.025, 0.375});
}

TEST(SGD, WeightDecay) {
  expect_sequence<SGD>(
      SGDOptions{.lr = 0.1, .weight_decay = 0.01},
      {0.949, -1.898, 0.2995, 0.923051, -1.971102, 0.4492005, 0.934627949, -2.069130898,
       0.3987512995, 0.833693321051, -2.017061767102, 0.3733525482005});
}

TEST(SGD, Momentum) {
  expect_sequence<SGD>(
      SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01},
      {0.949, -1.898, 0.2995, 0.877151, -1.879302, 0.2687505, 0.824109749, -1.960594498,
       0.1908071995, 0.675548513351, -1.981797151702, 0.09546742185049997});
}

TEST(SGD, Dampening) {
  expect_sequence<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5},
                       {0.95, -1.9, 0.3, 0.8925, -1.8475, 0.195, 0.847, -1.85025, 0.0755, 0.75605,
                        -1.827725, -0.04455});
}

TEST(SGD, Nesterov) {
  expect_sequence<SGD>(
      SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
      {0.9031, -1.8062, 0.11905, 0.81257411, -1.86264822, 0.241418805, 0.776619708191,
       -2.034038166382, 0.1211991787705, 0.5422664858163371, -2.001100829007674,
       0.010488513648785985});
}

TEST(AdamW, Decoupled) {
  expect_sequence<AdamW>(
      AdamWOptions{.lr = 0.1, .weight_decay = 0.1},
      {0.890000002, -1.880000001, 0.3950000005, 0.7878820404574624, -1.8522675003505356,
       0.3821174998050022, 0.7236370841035367, -1.8682811000333428, 0.3589877260449196,
       0.6430318405419344, -1.859257613987413, 0.33397863224410285});
}

TEST(AdamW, OtherSettings) {
  expect_sequence<AdamW>(
      AdamWOptions{.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.5},
      {0.9250998003992016, -1.90004995004995, 0.43752498750624685, 0.8556752140422053,
       -1.8509674472901803, 0.4250047081662508, 0.8089246384986386, -1.8259488838804059,
       0.4060539868662034, 0.7517457192672077, -1.7858027775507652, 0.3859072962291943});
}

TEST(AdamW, AdamAddsDecayToTheGradient) {
  expect_sequence<AdamW>(
      AdamWOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled = false},
      {0.9000000016666666, -1.9000000008333333, 0.4000000004878049, 0.8050097658613199,
       -1.870767278976266, 0.3886128467403545, 0.7358516953412214, -1.8849570483615223,
       0.3666208540817513, 0.6563348945436893, -1.8720172964890762, 0.34227645653230954});
}

TEST(Optimizer, GroupsKeepTheirSettingsAndRatios) {
  const Parameter<float> a(full<float>({2}, 1));
  const Parameter<float> b(full<float>({2}, 1));
  SGD sgd({{{a.any()}, {.lr = 0.1}}, {{b.any()}, {.lr = 0.2, .weight_decay = 0.5}}});
  set_gradient(a, {1, 1});
  set_gradient(b, {1, 1});
  sgd.step();
  EXPECT_FLOAT_EQ(a.value()(0), 0.9F);
  EXPECT_FLOAT_EQ(b.value()(0), 1 - 0.2F * 1.5F);
  sgd.set_lr(0.01);
  EXPECT_DOUBLE_EQ(sgd.lr(0), 0.01);
  EXPECT_DOUBLE_EQ(sgd.lr(1), 0.02);
  EXPECT_THROW((void)sgd.lr(2), IndexError);
}

TEST(Optimizer, SkipsParametersWithoutGradient) {
  const Parameter<float> a(full<float>({2}, 1));
  const Parameter<float> b(full<float>({2}, 1));
  AdamW adam({a.any(), b.any()}, {.lr = 0.1, .weight_decay = 1});
  set_gradient(a, {1, 1});
  adam.step();
  EXPECT_EQ(b.value().to_vector(), (std::vector<float>{1, 1}));
  EXPECT_NE(a.value()(0), 1);
  EXPECT_EQ(adam.state_dict().find("state.1.step"), nullptr);
  adam.zero_grad();
  EXPECT_FALSE(a.grad().defined());
  const float before = a.value()(0);
  adam.step();
  EXPECT_EQ(a.value()(0), before);
}

TEST(Optimizer, StridedGradientsAndMasters) {
  Generator g(3);
  const auto start = randn<float>({4, 3, 5, 5}, 0, 1, {}, g);
  const auto gradient = randn<float>({4, 3, 5, 5}, 0, 1, {}, g);
  const Parameter<float> dense(start.clone());
  const Parameter<float> strided(start.contiguous(MemoryFormat::channels_last));
  const Parameter<float> odd(start.transpose(0, 1).contiguous().transpose(0, 1));
  for (auto make : {0, 1}) {
    std::vector<std::vector<float>> results;
    for (const auto& [p, grad] :
         {std::pair{&dense, gradient},
          std::pair{&strided, gradient.contiguous(MemoryFormat::row_major)},
          std::pair{&odd, gradient.contiguous(MemoryFormat::channels_last)}}) {
      std::unique_ptr<Optimizer> o;
      if (make == 0)
        o = std::make_unique<SGD>(std::vector{p->any()},
                                  SGDOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true});
      else
        o = std::make_unique<AdamW>(std::vector{p->any()}, AdamWOptions{.lr = 0.1});
      for (int i = 0; i < 3; ++i) {
        p->set_grad(grad);
        o->step();
      }
      results.push_back(p->value().to_vector());
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

template <class Optim, class Options>
void expect_exact_resume(const Options& options) {
  Generator g(5);
  const auto start = randn<float>({301}, 0, 1, {}, g);
  std::vector<Tensor<float>> gradients;
  for (int i = 0; i < 6; ++i) gradients.push_back(randn<float>({301}, 0, 1, {}, g));
  const Parameter<bfloat16> a(start.clone());
  Optim straight({a.any()}, options);
  const Parameter<bfloat16> b(start.clone());
  auto resumed = std::make_unique<Optim>(std::vector{b.any()}, options);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const double lr = 0.1 / static_cast<double>(i + 1);
    straight.set_lr(lr);
    resumed->set_lr(lr);
    a.set_grad(gradients[i]);
    b.set_grad(gradients[i]);
    straight.step();
    resumed->step();
    if (i == 2) {
      const StateDict saved = resumed->state_dict();
      auto fresh = std::make_unique<Optim>(std::vector{b.any()}, options);
      fresh->load_state_dict(saved);
      EXPECT_EQ(fresh->lr(), lr);
      resumed = std::move(fresh);
    }
  }
  EXPECT_EQ(a.master().to_vector(), b.master().to_vector());
}

TEST(Optimizer, ResumesBitForBit) {
  expect_exact_resume<SGD>(SGDOptions{.momentum = 0.9, .weight_decay = 5e-4, .nesterov = true});
  expect_exact_resume<SGD>(SGDOptions{});
  expect_exact_resume<AdamW>(AdamWOptions{});
}

TEST(Optimizer, RefusesForeignState) {
  const Parameter<float> a(full<float>({2}, 1));
  const Parameter<float> b(full<float>({3}, 1));
  AdamW adam({a.any()});
  AdamW other({b.any()});
  set_gradient(a, {1, 1});
  set_gradient(b, {1, 1, 1});
  adam.step();
  other.step();
  try {
    adam.load_state_dict(other.state_dict());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("state.0.exp_avg: expected (2) float32, got (3)"),
              std::string::npos)
        << e.what();
  }
  SGD sgd({a.any()}, {.momentum = 0.9});
  EXPECT_THROW(sgd.load_state_dict(adam.state_dict()), Error);
  EXPECT_THROW(sgd.load_state_dict(StateDict()), Error);
  StateDict extra = sgd.state_dict();
  extra.add("state.7.step", scalar<int64_t>(1));
  EXPECT_THROW(sgd.load_state_dict(extra), Error);
}

TEST(Optimizer, RefusesNonsense) {
  const Parameter<float> a(full<float>({2}, 1));
  const std::vector<AnyParameter> p{a.any()};
  EXPECT_THROW(SGD(p, {.lr = -1}), TypeError);
  EXPECT_THROW(SGD(p, {.lr = std::nan("")}), TypeError);
  EXPECT_THROW(SGD(p, {.momentum = -0.1}), TypeError);
  EXPECT_THROW(SGD(p, {.weight_decay = -0.1}), TypeError);
  EXPECT_THROW(SGD(p, {.nesterov = true}), TypeError);
  EXPECT_THROW(SGD(p, {.momentum = 0.9, .dampening = 0.1, .nesterov = true}), TypeError);
  EXPECT_THROW(SGD({a.any(), a.any()}), TypeError);
  EXPECT_THROW(SGD({AnyParameter()}), TypeError);
  EXPECT_THROW(SGD(std::vector<ParamGroup<SGDOptions>>{}), TypeError);
  EXPECT_THROW(AdamW(p, {.beta1 = 1}), TypeError);
  EXPECT_THROW(AdamW(p, {.beta2 = -0.1}), TypeError);
  EXPECT_THROW(AdamW(p, {.eps = -1}), TypeError);
  SGD sgd(p);
  EXPECT_THROW(sgd.set_lr(-1), TypeError);
  // a gradient of another shape changes nothing
  a.any().gradient() = full<float>({3}, 1).any();
  EXPECT_THROW(sgd.step(), ShapeError);
  EXPECT_EQ(a.value().to_vector(), (std::vector<float>{1, 1}));
}

TEST(Clip, NormScalesAllGradientsTogether) {
  const Parameter<float> a(zeros<float>({2}));
  const Parameter<float> b(zeros<float>({1}));
  const Parameter<float> none(zeros<float>({4}));
  set_gradient(a, {3, 0});
  set_gradient(b, {4});
  const std::vector<AnyParameter> p{a.any(), b.any(), none.any()};
  EXPECT_DOUBLE_EQ(grad_norm(p), 5);
  ClipResult r = clip_grad_norm(p, 10);
  EXPECT_FALSE(r.clipped);
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{3, 0}));
  r = clip_grad_norm(p, 1);
  EXPECT_TRUE(r.clipped);
  EXPECT_DOUBLE_EQ(r.norm, 5);
  EXPECT_NEAR(a.grad()(0), 0.6F, 1e-6);
  EXPECT_NEAR(b.grad()(0), 0.8F, 1e-6);
  EXPECT_EQ(grad_norm({none.any()}), 0);
  EXPECT_THROW(clip_grad_norm(p, 0), TypeError);
  EXPECT_THROW(clip_grad_norm(p, std::nan("")), TypeError);
}

TEST(Clip, NonFiniteNormLeavesGradients) {
  for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    const Parameter<float> a(zeros<float>({2}));
    const Parameter<float> b(zeros<float>({1}));
    set_gradient(a, {3, bad});
    set_gradient(b, {4});
    const ClipResult r = clip_grad_norm({a.any(), b.any()}, 1);
    EXPECT_FALSE(r.finite);
    EXPECT_FALSE(r.clipped);
    EXPECT_FALSE(std::isfinite(r.norm));
    EXPECT_EQ(a.grad()(0), 3);
    EXPECT_EQ(b.grad()(0), 4);
  }
  // squares above the range of float do not make the norm infinite
  const Parameter<float> a(zeros<float>({2}));
  set_gradient(a, {3e30, 4e30});
  const ClipResult r = clip_grad_norm({a.any()}, 1);
  EXPECT_TRUE(r.finite);
  EXPECT_NEAR(r.norm, 5e30, 1e24);
}

TEST(Clip, NormDoesNotDependOnThreadsOrStrides) {
  Generator g(7);
  const auto x = randn<float>({37, 1501}, 0, 1, {}, g);
  const Parameter<float> a(zeros<float>({37, 1501}));
  const int threads = num_threads();
  a.set_grad(x);
  set_num_threads(1);
  const double one = grad_norm({a.any()});
  set_num_threads(4);
  EXPECT_EQ(grad_norm({a.any()}), one);
  set_num_threads(threads);
  const Parameter<float> t(zeros<float>({1501, 37}));
  t.set_grad(x.t());
  EXPECT_EQ(grad_norm({t.any()}), one);
  double exact = 0;
  for (float v : x.to_vector()) exact += static_cast<double>(v) * v;
  EXPECT_NEAR(one, std::sqrt(exact), 1e-9 * one);
}

TEST(Clip, Value) {
  const Parameter<float> a(zeros<float>({4}));
  set_gradient(a, {3, -3, 0.5, std::nan("")});
  clip_grad_value({a.any()}, 1);
  EXPECT_EQ(a.grad()(0), 1);
  EXPECT_EQ(a.grad()(1), -1);
  EXPECT_EQ(a.grad()(2), 0.5F);
  EXPECT_TRUE(std::isnan(a.grad()(3)));
  EXPECT_THROW(clip_grad_value({a.any()}, -1), TypeError);
}

TEST(DecayGroups, VectorsAreNotDecayed) {
  const Parameter<float> matrix(ones<float>({2, 3}));
  const Parameter<float> bias(ones<float>({3}));
  const auto groups =
      decay_groups({bias.any(), matrix.any()}, SGDOptions{.lr = 1, .weight_decay = 0.5});
  SGD sgd(groups);
  matrix.set_grad(zeros<float>({2, 3}));
  bias.set_grad(zeros<float>({3}));
  sgd.step();
  EXPECT_EQ(matrix.value().to_vector(), std::vector<float>(6, 0.5F));
  EXPECT_EQ(bias.value().to_vector(), std::vector<float>(3, 1));
}

}  // namespace
}  // namespace gable::optim
