// SPDX-License-Identifier: Apache-2.0
// Loss scaling on every device.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "errors.hpp"
#include "gable/amp/grad_scaler.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/optim/clip.hpp"
#include "gable/optim/sgd.hpp"
#include "gable/tensor/random.hpp"

namespace gable::amp {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

class Amp : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  [[nodiscard]] Device device() const { return {GetParam(), 0}; }
  [[nodiscard]] Parameter<float> parameter(float value, int64_t n = 1) const {
    return Parameter<float>(full<float>({n}, value, {.device = device()}));
  }
};

TEST_P(Amp, G11StateMachine) {
  for (const float bad : {kInf, std::numeric_limits<float>::quiet_NaN()}) {
    const Parameter<float> w = parameter(1);
    const Parameter<float> without_gradient = parameter(3);
    optim::SGD sgd({w.any(), without_gradient.any()}, {.lr = 1});
    GradScaler scaler({.growth_interval = 2, .device = device()});
    const std::vector<double> scales{65536, 131072, 65536, 65536, 131072};
    const std::vector<float> weights{0.875F, 0.75F, 0.75F, 0.625F, 0.5F};
    for (size_t i = 0; i < 5; ++i) {
      const float g = i == 2 ? bad : 0.125F * static_cast<float>(scaler.current_scale());
      w.set_grad(full<float>({1}, g, {.device = device()}));
      scaler.step(sgd);
      EXPECT_EQ(scaler.found_inf(), i == 2);
      scaler.update();
      EXPECT_EQ(scaler.current_scale(), scales[i]) << "step " << i;
      EXPECT_EQ(w.value().item(), weights[i]) << "step " << i;
    }
    EXPECT_EQ(scaler.steps_taken(), 4);
    EXPECT_EQ(scaler.steps_skipped(), 1);
    EXPECT_EQ(without_gradient.value().item(), 3);
  }
}

TEST_P(Amp, G11ScaleStaysFinite) {
  const Parameter<float> w = parameter(1);
  optim::SGD sgd({w.any()}, {.lr = 1});
  GradScaler scaler({.init_scale = std::ldexp(1.0, 127), .growth_interval = 1, .device = device()});
  w.set_grad(zeros<float>({1}, {.device = device()}));
  scaler.step(sgd);
  scaler.update();
  EXPECT_EQ(scaler.current_scale(), std::ldexp(1.0, 127));
}

TEST_P(Amp, G11OrderOfCalls) {
  const Parameter<float> w = parameter(1);
  optim::SGD sgd({w.any()}, {.lr = 1});
  GradScaler scaler({.device = device()});
  w.set_grad(full<float>({1}, kInf, {.device = device()}));
  scaler.unscale_(sgd);
  EXPECT_HAS(error_of<Error>([&] { scaler.unscale_(sgd); }), "[unscale_] expected update()");
  EXPECT_HAS(error_of<Error>([&] { scaler.update(); }), "expected a step()");
  scaler.step(sgd);  // skipped
  EXPECT_HAS(error_of<Error>([&] { scaler.step(sgd); }), "expected update()");
  scaler.update();
  scaler.unscale_(sgd);
  EXPECT_THROW(GradScaler({.init_scale = 0}), TypeError);
  EXPECT_THROW(GradScaler({.init_scale = 1e300}), TypeError);
  EXPECT_THROW(GradScaler({.backoff_factor = 1}), TypeError);
}

// Skipped steps leave no trace: Adam's bias correction and SGD's first momentum go by real steps.
TEST_P(Amp, SkippedStepsDoNotCount) {
  auto train = [&](bool with_inf, bool adam) {
    const Parameter<float> w = parameter(1, 1001);
    std::unique_ptr<optim::Optimizer> o;
    if (adam)
      o = std::make_unique<optim::AdamW>(std::vector{w.any()}, optim::AdamWOptions{.lr = 0.1});
    else
      o = std::make_unique<optim::SGD>(
          std::vector{w.any()}, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5});
    GradScaler scaler({.init_scale = 4, .device = device()});
    for (int step = 0; step < 4; ++step) {
      if (with_inf && step % 2 == 0) {
        w.set_grad(full<float>({1001}, kInf, {.device = device()}));
        scaler.step(*o);
        scaler.update();
      }
      const float g =
          static_cast<float>(scaler.current_scale()) * (0.5F + static_cast<float>(step));
      w.set_grad(full<float>({1001}, g, {.device = device()}));
      scaler.step(*o);
      scaler.update();
    }
    return w.value().to_vector();
  };
  EXPECT_EQ(train(true, false), train(false, false));
  EXPECT_EQ(train(true, true), train(false, true));
}

TEST_P(Amp, ScalesTheLossAndClips) {
  const Parameter<float> w = parameter(2, 4);
  optim::SGD sgd({w.any()}, {.lr = 1});
  GradScaler scaler({.init_scale = 1024, .device = device()});
  scaler.scale(sum(w * 3.0F)).backward();
  EXPECT_EQ(w.grad().to_vector(), std::vector<float>(4, 3072));
  scaler.unscale_(sgd);
  EXPECT_EQ(w.grad().to_vector(), std::vector<float>(4, 3));
  const optim::DeviceClip clip = optim::clip_factor(sgd.parameters(), 3);
  EXPECT_EQ(clip.norm.item(), 6);
  EXPECT_EQ(clip.found_inf.item(), 0);
  scaler.step(sgd, clip.factor);
  scaler.update();
  for (const float v : w.value().to_vector()) EXPECT_NEAR(v, 0.5F, 1e-6F);
}

TEST_P(Amp, StateTravels) {
  const Parameter<float> w = parameter(1);
  optim::SGD sgd({w.any()}, {.lr = 1});
  GradScaler a({.growth_interval = 2, .device = device()});
  w.set_grad(zeros<float>({1}, {.device = device()}));
  a.step(sgd);
  a.update();
  GradScaler b({.init_scale = 1, .growth_interval = 2, .device = device()});
  b.load_state_dict(a.state_dict());
  b.step(sgd);
  b.update();
  EXPECT_EQ(b.current_scale(), 131072);
  EXPECT_EQ(b.steps_taken(), 2);
  EXPECT_HAS(error_of<Error>([&] { b.load_state_dict(StateDict()); }), "scale missing");
}

// Many parameters of odd sizes and views, in one launch: the same as one by one on the CPU.
TEST_P(Amp, ManyParametersInOneLaunch) {
  auto train = [](Device d, auto make_optimizer) {
    Generator g(3);
    std::vector<Parameter<bfloat16>> own;
    std::vector<AnyParameter> all;
    for (int i = 0; i < 131; ++i) {
      const Shape shape = i % 3 == 0 ? Shape{1 + i, 7} : Shape{1 + 37 * i};
      own.emplace_back(rand<float>(shape, -1, 1, {}, g).to(d));
      if (i % 5 == 0)  // a transposed gradient
        own.back().set_grad(i % 3 == 0 ? rand<float>({7, 1 + i}, -1, 1, {}, g).t().to(d)
                                       : rand<float>(shape, -1, 1, {}, g).to(d));
      else
        own.back().set_grad(rand<float>(shape, -1, 1, {}, g).to(d));
      all.push_back(own.back().any());
    }
    auto optimizer = make_optimizer(all);
    for (int step = 0; step < 3; ++step) optimizer->step(0.5);
    std::vector<float> out;
    for (const auto& p : own) {
      for (const float v : p.master().to_vector()) out.push_back(v);
      for (const bfloat16 v : p.value().to_vector()) out.push_back(static_cast<float>(v));
    }
    return out;
  };
  auto sgd = [](const std::vector<AnyParameter>& p) {
    return std::make_unique<optim::SGD>(
        p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  };
  auto adam = [](const std::vector<AnyParameter>& p) {
    return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01});
  };
  auto compare = [&](auto make) {
    const std::vector<float> got = train(device(), make);
    const std::vector<float> want = train(kCpu, make);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-2F * std::abs(want[i]) + 1e-5F) << i;
  };
  compare(sgd);
  compare(adam);
}

std::string device_name(const testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::cuda ? "Cuda" : "Cpu";
}
INSTANTIATE_TEST_SUITE_P(Devices, Amp, testing::Values(DeviceType::cpu, DeviceType::cuda),
                         device_name);

}  // namespace
}  // namespace gable::amp
