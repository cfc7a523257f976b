// SPDX-License-Identifier: Apache-2.0
// Models: torchvision's names and shapes, parameter counts, 16-bit types, hidden copies.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "gable/memory/copy_stats.hpp"
#include "gable/models/mlp.hpp"
#include "gable/models/resnet.hpp"

namespace gable::models {
namespace {

// The keys of torchvision.models.resnet18().state_dict(), but for num_batches_tracked, which
// follows each running_var.
const std::vector<std::string> kResNet18Keys = {
    "conv1.weight",
    "bn1.weight",
    "bn1.bias",
    "bn1.running_mean",
    "bn1.running_var",
    "layer1.0.conv1.weight",
    "layer1.0.bn1.weight",
    "layer1.0.bn1.bias",
    "layer1.0.bn1.running_mean",
    "layer1.0.bn1.running_var",
    "layer1.0.conv2.weight",
    "layer1.0.bn2.weight",
    "layer1.0.bn2.bias",
    "layer1.0.bn2.running_mean",
    "layer1.0.bn2.running_var",
    "layer1.1.conv1.weight",
    "layer1.1.bn1.weight",
    "layer1.1.bn1.bias",
    "layer1.1.bn1.running_mean",
    "layer1.1.bn1.running_var",
    "layer1.1.conv2.weight",
    "layer1.1.bn2.weight",
    "layer1.1.bn2.bias",
    "layer1.1.bn2.running_mean",
    "layer1.1.bn2.running_var",
    "layer2.0.conv1.weight",
    "layer2.0.bn1.weight",
    "layer2.0.bn1.bias",
    "layer2.0.bn1.running_mean",
    "layer2.0.bn1.running_var",
    "layer2.0.conv2.weight",
    "layer2.0.bn2.weight",
    "layer2.0.bn2.bias",
    "layer2.0.bn2.running_mean",
    "layer2.0.bn2.running_var",
    "layer2.0.downsample.0.weight",
    "layer2.0.downsample.1.weight",
    "layer2.0.downsample.1.bias",
    "layer2.0.downsample.1.running_mean",
    "layer2.0.downsample.1.running_var",
    "layer2.1.conv1.weight",
    "layer2.1.bn1.weight",
    "layer2.1.bn1.bias",
    "layer2.1.bn1.running_mean",
    "layer2.1.bn1.running_var",
    "layer2.1.conv2.weight",
    "layer2.1.bn2.weight",
    "layer2.1.bn2.bias",
    "layer2.1.bn2.running_mean",
    "layer2.1.bn2.running_var",
    "layer3.0.conv1.weight",
    "layer3.0.bn1.weight",
    "layer3.0.bn1.bias",
    "layer3.0.bn1.running_mean",
    "layer3.0.bn1.running_var",
    "layer3.0.conv2.weight",
    "layer3.0.bn2.weight",
    "layer3.0.bn2.bias",
    "layer3.0.bn2.running_mean",
    "layer3.0.bn2.running_var",
    "layer3.0.downsample.0.weight",
    "layer3.0.downsample.1.weight",
    "layer3.0.downsample.1.bias",
    "layer3.0.downsample.1.running_mean",
    "layer3.0.downsample.1.running_var",
    "layer3.1.conv1.weight",
    "layer3.1.bn1.weight",
    "layer3.1.bn1.bias",
    "layer3.1.bn1.running_mean",
    "layer3.1.bn1.running_var",
    "layer3.1.conv2.weight",
    "layer3.1.bn2.weight",
    "layer3.1.bn2.bias",
    "layer3.1.bn2.running_mean",
    "layer3.1.bn2.running_var",
    "layer4.0.conv1.weight",
    "layer4.0.bn1.weight",
    "layer4.0.bn1.bias",
    "layer4.0.bn1.running_mean",
    "layer4.0.bn1.running_var",
    "layer4.0.conv2.weight",
    "layer4.0.bn2.weight",
    "layer4.0.bn2.bias",
    "layer4.0.bn2.running_mean",
    "layer4.0.bn2.running_var",
    "layer4.0.downsample.0.weight",
    "layer4.0.downsample.1.weight",
    "layer4.0.downsample.1.bias",
    "layer4.0.downsample.1.running_mean",
    "layer4.0.downsample.1.running_var",
    "layer4.1.conv1.weight",
    "layer4.1.bn1.weight",
    "layer4.1.bn1.bias",
    "layer4.1.bn1.running_mean",
    "layer4.1.bn1.running_var",
    "layer4.1.conv2.weight",
    "layer4.1.bn2.weight",
    "layer4.1.bn2.bias",
    "layer4.1.bn2.running_mean",
    "layer4.1.bn2.running_var",
    "fc.weight",
    "fc.bias",
};

TEST(ResNet18, KeysAreTorchvisions) {
  std::vector<std::string> want;
  for (const std::string& key : kResNet18Keys) {
    want.push_back(key);
    if (key.ends_with("running_var"))
      want.push_back(key.substr(0, key.size() - 11) + "num_batches_tracked");
  }
  std::vector<std::string> got;
  ResNet18<float> net;
  for (const auto& [name, tensor] : net.state_dict()) got.push_back(name);
  EXPECT_EQ(got, want);
  EXPECT_EQ(got.size(), 122U);
}

TEST(ResNet, NumbersOfParameters) {
  EXPECT_EQ(ResNet18<float>({.num_classes = 10, .stem = Stem::cifar}).num_parameters(), 11173962);
  EXPECT_EQ(ResNet18<float>().num_parameters(), 11689512);  // torchvision's
  EXPECT_EQ(ResNet34<float>().num_parameters(), 21797672);
  EXPECT_EQ(ResNet50<float>().num_parameters(), 25557032);
  EXPECT_EQ(ResNet50<float>({.num_classes = 10, .stem = Stem::cifar}).num_parameters(), 23520842);
}

TEST(ResNet, ConvolutionsAreKaimingNormalFanOutAndChannelsLast) {
  Generator g(1);
  ResNet18<float> net({.num_classes = 10, .stem = Stem::cifar, .zero_init_residual = true}, g);
  const auto& weight = net.state_dict().find("layer2.1.conv2.weight")->as<float>();
  EXPECT_TRUE(weight.is_contiguous(MemoryFormat::channels_last));
  double square = 0;
  for (const float w : weight.to_vector())
    square += static_cast<double>(w) * static_cast<double>(w);
  EXPECT_NEAR(square / static_cast<double>(weight.numel()) * (128 * 9) / 2, 1.0, 0.02);
  for (const float w : net.state_dict().find("layer3.0.bn2.weight")->as<float>().to_vector())
    EXPECT_EQ(w, 0.0F);
  Generator h(1);
  ResNet18<float> same({.num_classes = 10, .stem = Stem::cifar, .zero_init_residual = true}, h);
  EXPECT_EQ(same.conv1.weight.value().to_vector(), net.conv1.weight.value().to_vector());
}

template <class T>
class SmallResNet : public testing::Test {};
using Floats = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(SmallResNet, Floats);

TYPED_TEST(SmallResNet, ForwardAndBackward) {
  ResNet18<TypeParam> net({.num_classes = 10, .width = 4, .stem = Stem::cifar});
  const Variable<TypeParam> x(
      randn<TypeParam>({4, 3, 16, 16}).contiguous(MemoryFormat::channels_last));
  const Variable<TypeParam> y = net(x);
  EXPECT_EQ(concat(y.shape()), "(4, 10)");
  Tensor<TypeParam> dy = zeros<TypeParam>({4, 10});
  for (int64_t i = 0; i < 4; ++i) dy(i, i) = convert<TypeParam>(1.0F);
  y.backward(dy);
  for (const auto& [name, p] : net.named_parameters()) {
    ASSERT_TRUE(p.gradient().defined()) << name;
    EXPECT_EQ(p.gradient().dtype(), dtype_of<Compute<TypeParam>>) << name;
    double sum = 0;
    for (const double v : p.gradient().to(DType::float64).template as<double>().to_vector())
      sum += v * v;
    EXPECT_TRUE(std::isfinite(sum)) << name;
    EXPECT_GT(sum, 0) << name;
  }
}

TEST(ResNet, ImageNetStemAndBottleneck) {
  ResNet50<float> net({.num_classes = 7, .width = 4});
  net.eval();
  const NoGrad no_grad;
  EXPECT_EQ(concat(net(Variable<float>(randn<float>({1, 3, 64, 48}))).shape()), "(1, 7)");
}

TEST(ResNet, StepCopiesNothingAfterItsFirstInput) {
  ResNet18<float> net({.num_classes = 10, .width = 8, .stem = Stem::cifar});
  const Variable<float> x(randn<float>({4, 3, 16, 16}).contiguous(MemoryFormat::channels_last));
  reset_copy_stats();
  const Variable<float> y = net(x);
  EXPECT_EQ(copy_stats().hidden_copies, 0) << "forward";
  y.backward(ones<float>({4, 10}));
  EXPECT_EQ(copy_stats().hidden_copies, 0) << "backward";
  EXPECT_EQ(copy_stats().layout_conversions, 0);
}

TEST(ResNet, WrongChannelsNameBothShapes) {
  ResNet18<float> net({.num_classes = 10, .width = 4, .stem = Stem::cifar});
  EXPECT_THROW((void)net(Variable<float>(zeros<float>({2, 4, 8, 8}))), ShapeError);
}

TEST(MLP, NamesAndShapes) {
  MLP<float> net({12, 5, 3}, {.dropout = 0.1});
  std::vector<std::string> names;
  for (const auto& [name, p] : net.named_parameters()) names.push_back(name);
  const std::vector<std::string> want = {"0.weight", "0.bias", "3.weight", "3.bias"};
  EXPECT_EQ(names, want);
  EXPECT_EQ(concat(net(Variable<float>(ones<float>({2, 3, 2, 2}))).shape()), "(2, 3)");
  EXPECT_THROW(MLP<float>({3}), TypeError);
}

}  // namespace
}  // namespace gable::models
