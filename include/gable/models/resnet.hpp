// SPDX-License-Identifier: Apache-2.0
// ResNet-18, -34 and -50 (He et al. 2015), with torchvision's parameter names.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "gable/nn/conv.hpp"
#include "gable/nn/linear.hpp"
#include "gable/nn/norm.hpp"
#include "gable/nn/pool.hpp"
#include "gable/nn/sequential.hpp"

namespace gable::models {

/// What stands before the first block.
enum class Stem : uint8_t {
  imagenet,  ///< 7x7 convolution of stride 2, max-pool 3x3 of stride 2
  cifar,     ///< 3x3 convolution of stride 1
};

struct ResNetOptions {
  int64_t num_classes = 1000;
  int64_t width = 64;  ///< channels of the first stage; the others have 2, 4 and 8 times as many
  Stem stem = Stem::imagenet;
  int64_t in_channels = 3;
  bool zero_init_residual = false;  ///< the last norm of each block starts at 0
};

enum class Block : uint8_t { basic, bottleneck };

/// Two 3x3 convolutions with a shortcut.
template <FloatElement T>
class BasicBlock : public nn::Module<T> {
 public:
  /// `channels` is also the number of outputs.
  BasicBlock(int64_t in, int64_t channels, int64_t stride, Generator& g);
  Variable<T> forward(const Variable<T>& x) override;
  [[nodiscard]] std::string describe() const override { return "BasicBlock"; }

  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  nn::Conv2d<T> conv2;
  nn::BatchNorm2d<T> bn2;
  std::shared_ptr<nn::Sequential<T>> downsample;  ///< null where the shapes agree
};

/// 1x1, 3x3 (with the stride), 1x1 to 4 * channels.
template <FloatElement T>
class Bottleneck : public nn::Module<T> {
 public:
  Bottleneck(int64_t in, int64_t channels, int64_t stride, Generator& g);
  Variable<T> forward(const Variable<T>& x) override;
  [[nodiscard]] std::string describe() const override { return "Bottleneck"; }

  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  nn::Conv2d<T> conv2;
  nn::BatchNorm2d<T> bn2;
  nn::Conv2d<T> conv3;
  nn::BatchNorm2d<T> bn3;
  std::shared_ptr<nn::Sequential<T>> downsample;
};

/// (N, in_channels, H, W) to logits (N, num_classes). Convolutions are Kaiming-normal (fan out),
/// norms 1 and 0, the last layer PyTorch's default. One generator state gives the same weights.
template <FloatElement T>
class ResNet : public nn::Module<T> {
 public:
  /// `depths`: blocks a stage.
  ResNet(Block block, const std::array<int, 4>& depths, const ResNetOptions& options,
         Generator& g = default_generator());
  Variable<T> forward(const Variable<T>& x) override;
  [[nodiscard]] std::string describe() const override { return "ResNet"; }

  nn::Conv2d<T> conv1;
  nn::BatchNorm2d<T> bn1;
  std::array<nn::Sequential<T>, 4> layers;  ///< "layer1" to "layer4"
  nn::Linear<T> fc;

 private:
  Stem stem_;
};

///     models::ResNet18<float> net({.num_classes = 10, .stem = models::Stem::cifar});
template <FloatElement T>
class ResNet18 : public ResNet<T> {
 public:
  explicit ResNet18(const ResNetOptions& options = {}, Generator& g = default_generator())
      : ResNet<T>(Block::basic, {2, 2, 2, 2}, options, g) {}
};
template <FloatElement T>
class ResNet34 : public ResNet<T> {
 public:
  explicit ResNet34(const ResNetOptions& options = {}, Generator& g = default_generator())
      : ResNet<T>(Block::basic, {3, 4, 6, 3}, options, g) {}
};
template <FloatElement T>
class ResNet50 : public ResNet<T> {
 public:
  explicit ResNet50(const ResNetOptions& options = {}, Generator& g = default_generator())
      : ResNet<T>(Block::bottleneck, {3, 4, 6, 3}, options, g) {}
};

GABLE_MODULE(extern, BasicBlock)
GABLE_MODULE(extern, Bottleneck)
GABLE_MODULE(extern, ResNet)
GABLE_MODULE(extern, ResNet18)
GABLE_MODULE(extern, ResNet34)
GABLE_MODULE(extern, ResNet50)

}  // namespace gable::models
