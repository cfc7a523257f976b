// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules against the sequences that PyTorch 1.13 gives.
#include "gable/optim/schedule.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "gable/core/error.hpp"

namespace gable::optim {
namespace {

void expect_sequence(const Schedule& schedule, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(schedule(static_cast<int64_t>(i)), expected[i], 1e-12) << "step " << i;
}

TEST(Schedule, Constant) { expect_sequence(ConstantLr{0.25}, {0.25, 0.25, 0.25}); }

TEST(Schedule, StepDecay) {
  // StepLR(step_size=3, gamma=0.1)
  expect_sequence(StepDecay{.lr = 0.4, .step_size = 3, .gamma = 0.1},
                  {0.4, 0.4, 0.4, 0.04, 0.04, 0.04, 0.004, 0.004});
}

TEST(Schedule, OneCycleCosine) {
  // OneCycleLR(max_lr=0.4, total_steps=10, pct_start=0.3)
  expect_sequence(OneCycle{.max_lr = 0.4, .total_steps = 10, .pct_start = 0.3},
                  {0.016, 0.208, 0.4, 0.38019385280538953, 0.3246982615799052, 0.24450480877451572,
                   0.1554967912254843, 0.0753033384200948, 0.019807747194610516, 1.6e-06});
}

TEST(Schedule, OneCycleLinear) {
  // pct_start=0.25, anneal_strategy='linear', div_factor=10, final_div_factor=100
  expect_sequence(
      OneCycle{.max_lr = 0.4,
               .total_steps = 10,
               .pct_start = 0.25,
               .div_factor = 10,
               .final_div_factor = 100,
               .anneal = Anneal::linear},
      {0.04, 0.28, 0.37336, 0.32008, 0.2668, 0.21352, 0.16024, 0.10696, 0.05368, 0.0004});
}

TEST(Schedule, CosineWithWarmup) {
  // LinearLR(0.25, 1.0, 4), then CosineAnnealingLR(8, 0.01)
  expect_sequence(
      CosineWarmup{.lr = 0.4, .total_steps = 12, .warmup = 4, .warmup_start = 0.25, .min_lr = 0.01},
      {0.1, 0.175, 0.25, 0.325, 0.4, 0.38515650883970093, 0.34288582233137677, 0.2796232693111925,
       0.205, 0.13037673068880748, 0.06711417766862324, 0.024843491160299085});
  // CosineAnnealingLR(8, 0)
  expect_sequence(CosineWarmup{.lr = 0.4, .total_steps = 8},
                  {0.4, 0.38477590650225735, 0.3414213562373095, 0.276536686473018, 0.2,
                   0.12346331352698206, 0.05857864376269051, 0.015224093497742654, 0, 0, 0});
}

// A run resumed at any step sees the same rates: there is no state to lose.
TEST(Schedule, DependsOnTheStepAlone) {
  const Schedule s = OneCycle{.max_lr = 1, .total_steps = 50};
  const double late = s(40);
  for (int64_t i = 0; i < 50; ++i) (void)s(i);
  EXPECT_EQ(s(40), late);
}

TEST(Schedule, Borders) {
  EXPECT_EQ((OneCycle{.max_lr = 0.5, .total_steps = 1}(0)), 0.5);
  const OneCycle no_rise{.max_lr = 0.5, .total_steps = 4, .pct_start = 0};
  EXPECT_LE(no_rise(0), 0.5);
  EXPECT_GT(no_rise(0), no_rise(1));
  const OneCycle exact{.max_lr = 0.5, .total_steps = 10, .pct_start = 0.1};  // peak at step 0
  EXPECT_EQ(exact(0), 0.5);
  const OneCycle rise{.max_lr = 0.5, .total_steps = 4, .pct_start = 1};
  EXPECT_EQ(rise(3), 0.5);
  const OneCycle cycle{.max_lr = 0.5, .total_steps = 4};
  EXPECT_EQ(cycle(100), cycle(3));
  EXPECT_DOUBLE_EQ(cycle(3), 0.5 / 25 / 1e4);
}

TEST(Schedule, RefusesNonsense) {
  EXPECT_THROW((void)(StepDecay{.step_size = 0})(1), TypeError);
  EXPECT_THROW((void)(StepDecay{})(-1), TypeError);
  EXPECT_THROW((void)(CosineWarmup{.total_steps = 5, .warmup = 5})(0), TypeError);
  EXPECT_THROW((void)(CosineWarmup{.total_steps = 5, .warmup = -1})(0), TypeError);
  EXPECT_THROW((void)(OneCycle{.total_steps = 0})(0), TypeError);
  EXPECT_THROW((void)(OneCycle{.total_steps = 9, .pct_start = 1.5})(0), TypeError);
  EXPECT_THROW((void)(OneCycle{.total_steps = 9})(-3), TypeError);
}

}  // namespace
}  // namespace gable::optim
