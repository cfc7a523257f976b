// SPDX-License-Identifier: Apache-2.0
// ResNet: blocks, stages, initialisation.
#include "gable/models/resnet.hpp"

namespace gable::models {

namespace {

constexpr int64_t kExpansion = 4;  // outputs of a bottleneck per channel

nn::Conv2dLayerOptions plain(int64_t stride, int64_t padding) {
  return {.stride = stride, .padding = padding, .bias = false};
}

// 1x1 convolution and norm on the shortcut, or null where the input fits as it is.
template <class T>
std::shared_ptr<nn::Sequential<T>> make_downsample(int64_t in, int64_t out, int64_t stride,
                                                   Generator& g) {
  if (in == out && stride == 1) return nullptr;
  auto shortcut = std::make_shared<nn::Sequential<T>>();
  shortcut->template add<nn::Conv2d>(in, out, 1, plain(stride, 0), g);
  shortcut->template add<nn::BatchNorm2d>(out);
  return shortcut;
}

}  // namespace

template <FloatElement T>
BasicBlock<T>::BasicBlock(int64_t in, int64_t channels, int64_t stride, Generator& g)
    : conv1(in, channels, 3, plain(stride, 1), g),
      bn1(channels),
      conv2(channels, channels, 3, plain(1, 1), g),
      bn2(channels),
      downsample(make_downsample<T>(in, channels, stride, g)) {
  this->register_module("conv1", conv1);
  this->register_module("bn1", bn1);
  this->register_module("conv2", conv2);
  this->register_module("bn2", bn2);
  if (downsample) this->register_module("downsample", downsample);
}

template <FloatElement T>
Variable<T> BasicBlock<T>::forward(const Variable<T>& x) {
  Variable<T> y = relu(bn1(conv1(x)));
  y = bn2(conv2(y));
  return relu(y + (downsample ? downsample->forward(x) : x));
}

template <FloatElement T>
Bottleneck<T>::Bottleneck(int64_t in, int64_t channels, int64_t stride, Generator& g)
    : conv1(in, channels, 1, plain(1, 0), g),
      bn1(channels),
      conv2(channels, channels, 3, plain(stride, 1), g),
      bn2(channels),
      conv3(channels, kExpansion * channels, 1, plain(1, 0), g),
      bn3(kExpansion * channels),
      downsample(make_downsample<T>(in, kExpansion * channels, stride, g)) {
  this->register_module("conv1", conv1);
  this->register_module("bn1", bn1);
  this->register_module("conv2", conv2);
  this->register_module("bn2", bn2);
  this->register_module("conv3", conv3);
  this->register_module("bn3", bn3);
  if (downsample) this->register_module("downsample", downsample);
}

template <FloatElement T>
Variable<T> Bottleneck<T>::forward(const Variable<T>& x) {
  Variable<T> y = relu(bn1(conv1(x)));
  y = relu(bn2(conv2(y)));
  y = bn3(conv3(y));
  return relu(y + (downsample ? downsample->forward(x) : x));
}

template <FloatElement T>
ResNet<T>::ResNet(Block block, const std::array<int, 4>& depths, const ResNetOptions& o,
                  Generator& g)
    : conv1(o.in_channels, o.width, o.stem == Stem::cifar ? 3 : 7,
            o.stem == Stem::cifar ? plain(1, 1) : plain(2, 3), g),
      bn1(o.width),
      fc((block == Block::basic ? 8 : 8 * kExpansion) * o.width, o.num_classes, true, g),
      stem_(o.stem) {
  this->register_module("conv1", conv1);
  this->register_module("bn1", bn1);
  int64_t in = o.width;
  for (size_t stage = 0; stage < layers.size(); ++stage) {
    const int64_t channels = o.width << stage;
    for (int i = 0; i < depths[stage]; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      if (block == Block::basic)
        layers[stage].template add<BasicBlock>(in, channels, stride, g);
      else
        layers[stage].template add<Bottleneck>(in, channels, stride, g);
      in = block == Block::basic ? channels : kExpansion * channels;
    }
    this->register_module(concat("layer", stage + 1), layers[stage]);
  }
  this->register_module("fc", fc);
  this->apply([&](nn::AnyModule& m) {
    if (auto* conv = dynamic_cast<nn::Conv2d<T>*>(&m))
      nn::init::kaiming_normal_(conv->weight, {.fan = nn::init::Fan::out}, g);
    if (!o.zero_init_residual) return;
    if (auto* basic = dynamic_cast<BasicBlock<T>*>(&m)) nn::init::zeros_(basic->bn2.weight);
    if (auto* bottle = dynamic_cast<Bottleneck<T>*>(&m)) nn::init::zeros_(bottle->bn3.weight);
  });
}

template <FloatElement T>
Variable<T> ResNet<T>::forward(const Variable<T>& x) {
  Variable<T> y = relu(bn1(conv1(x)));
  if (stem_ == Stem::imagenet) y = max_pool2d(y, 3, {.stride = 2, .padding = 1});
  for (nn::Sequential<T>& layer : layers) y = layer(y);
  return fc(flatten(adaptive_avg_pool2d(y, 1), 1));
}

GABLE_MODULE(, BasicBlock)
GABLE_MODULE(, Bottleneck)
GABLE_MODULE(, ResNet)
GABLE_MODULE(, ResNet18)
GABLE_MODULE(, ResNet34)
GABLE_MODULE(, ResNet50)

}  // namespace gable::models
