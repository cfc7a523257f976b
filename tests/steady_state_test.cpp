// SPDX-License-Identifier: Apache-2.0
// A training loop in its steady state: no memory from the system, no hidden copies, no layout
// conversions, and nothing kept.
#include <gtest/gtest.h>

#include "gable/gable.hpp"

namespace gable {
namespace {

class ResNetStep : public testing::Test {
 protected:
  Generator generator_{7};
  models::ResNet18<float> model_{{.num_classes = 10, .width = 8, .stem = models::Stem::cifar},
                                 generator_};
  optim::SGD optimizer_{model_.parameters(), {.lr = 0.05, .momentum = 0.9}};
  Tensor<float> images_ =
      randn<float>({4, 3, 32, 32}, 0, 1, {.format = MemoryFormat::channels_last}, generator_);
  Tensor<int64_t> labels_ = from_data<int64_t>({0, 3, 5, 9});

  float step() {
    optimizer_.zero_grad();
    const Variable<float> loss = cross_entropy(model_(images_), labels_);
    loss.backward();
    optimizer_.step();
    return loss.item();
  }
};

TEST_F(ResNetStep, AsksTheSystemForNothing) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the allocator does not cache under AddressSanitizer";
#endif
  // With several threads, how many hold scratch memory at once is a matter of timing.
  const int threads = num_threads();
  set_num_threads(1);
  step();  // makes the optimizer's state
  step();
  const AllocatorStats before = cpu_allocator().stats();
  for (int i = 0; i < 3; ++i) step();
  const AllocatorStats after = cpu_allocator().stats();
  set_num_threads(threads);
  EXPECT_EQ(after.system_requests, before.system_requests);
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  EXPECT_GT(after.allocations, before.allocations);
}

TEST_F(ResNetStep, CopiesNothingBehindTheScenes) {
  step();
  reset_copy_stats();
  step();
  EXPECT_EQ(copy_stats().layout_conversions, 0);
  EXPECT_EQ(copy_stats().hidden_copies, 0);
}

TEST_F(ResNetStep, ConvertsRowMajorImagesOnce) {
  images_ = images_.contiguous();
  step();
  reset_copy_stats();
  step();
  EXPECT_EQ(copy_stats().layout_conversions, 1);
}

TEST_F(ResNetStep, Learns) {
  const float first = step();
  float last = first;
  for (int i = 0; i < 15; ++i) last = step();
  EXPECT_LT(last, 0.5F * first);
}

TEST_F(ResNetStep, SameBitsForAnyThreadCount) {
  const int threads = num_threads();
  std::vector<float> losses[2];
  for (const int n : {1, 3}) {
    set_num_threads(n);
    Generator generator(11);
    models::ResNet18<float> model({.num_classes = 10, .width = 8, .stem = models::Stem::cifar},
                                  generator);
    optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
    for (int i = 0; i < 2; ++i) {
      optimizer.zero_grad();
      const Variable<float> loss = cross_entropy(model(images_), labels_);
      loss.backward();
      optimizer.step();
      losses[n == 1 ? 0 : 1].push_back(loss.item());
    }
    const Tensor<float> logits = model(images_).value();
    for (const float v : logits.to_vector()) losses[n == 1 ? 0 : 1].push_back(v);
  }
  set_num_threads(threads);
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace gable
