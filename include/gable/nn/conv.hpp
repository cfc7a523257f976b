// SPDX-License-Identifier: Apache-2.0
// Convolution layers. Weights are stored channels-last. Initialised as in PyTorch: weight and bias
// uniform in +-1 / sqrt(fan_in).
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/init.hpp"
#include "gable/nn/module.hpp"
#include "gable/ops/conv.hpp"

namespace gable::nn {

struct Conv1dLayerOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
struct Conv2dLayerOptions {
  Size2d stride = 1;
  Padding padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
struct ConvTranspose2dLayerOptions {
  Size2d stride = 1;
  Padding padding = 0;
  Size2d output_padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

namespace detail {
inline void check_channels(Where where, int64_t in, int64_t out, int64_t groups) {
  check<TypeError>(groups > 0 && in > 0 && out > 0 && in % groups == 0 && out % groups == 0, where,
                   "expected channels that ", groups, " groups divide, got ", in, " and ", out);
}
/// Registers and initialises weight and bias of a convolution.
template <class T>
void make_filters(Parameter<T>& weight, Parameter<T>& bias, const Shape& shape, int64_t biases,
                  Generator& g) {
  using C = Compute<T>;
  weight = Parameter<T>(zeros<C>(shape, {.format = MemoryFormat::channels_last}));
  if (biases > 0) bias = Parameter<T>(zeros<C>({biases}));
  init::default_(weight, bias, g);
}
inline std::string text(Size2d s) {
  return s.h == s.w ? std::to_string(s.h) : concat(s.h, "x", s.w);
}
}  // namespace detail

/// (N, in, H, W) to (N, out, OH, OW):
///   nn::Conv2d<float> conv(64, 128, 3, {.stride = 2, .padding = 1, .bias = false});
template <FloatElement T>
class Conv2d : public Module<T> {
 public:
  Conv2d(int64_t in, int64_t out, Size2d kernel, Conv2dLayerOptions o = {},
         Generator& g = default_generator())
      : options(o) {
    detail::check_channels("conv2d", in, out, o.groups);
    detail::make_filters(weight, bias, {out, in / o.groups, kernel.h, kernel.w}, o.bias ? out : 0,
                         g);
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
  }
  Variable<T> forward(const Variable<T>& x) override {
    return conv2d(x, weight, bias,
                  ConvOptions{options.stride, options.padding, options.dilation, options.groups});
  }
  [[nodiscard]] std::string describe() const override {
    return concat("Conv2d(", weight.size(1) * options.groups, ", ", weight.size(0), ", kernel ",
                  detail::text({weight.size(2), weight.size(3)}), ", stride ",
                  detail::text(options.stride),
                  options.groups > 1 ? concat(", groups ", options.groups) : "",
                  bias.defined() ? ")" : ", no bias)");
  }

  Conv2dLayerOptions options;
  Parameter<T> weight;  ///< (out, in / groups, kh, kw)
  Parameter<T> bias;    ///< (out), or undefined
};

/// (N, in, L) to (N, out, OL).
template <FloatElement T>
class Conv1d : public Module<T> {
 public:
  Conv1d(int64_t in, int64_t out, int64_t kernel, Conv1dLayerOptions o = {},
         Generator& g = default_generator())
      : options(o) {
    detail::check_channels("conv1d", in, out, o.groups);
    detail::make_filters(weight, bias, {out, in / o.groups, kernel}, o.bias ? out : 0, g);
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
  }
  Variable<T> forward(const Variable<T>& x) override {
    return conv1d(x, weight, bias,
                  Conv1dOptions{options.stride, options.padding, options.dilation, options.groups});
  }
  [[nodiscard]] std::string describe() const override {
    return concat("Conv1d(", weight.size(1) * options.groups, ", ", weight.size(0), ", kernel ",
                  weight.size(2), ", stride ", options.stride, bias.defined() ? ")" : ", no bias)");
  }

  Conv1dLayerOptions options;
  Parameter<T> weight;  ///< (out, in / groups, k)
  Parameter<T> bias;    ///< (out), or undefined
};

/// (N, in, H, W) to (N, out, OH, OW), the adjoint of a convolution from out to in.
template <FloatElement T>
class ConvTranspose2d : public Module<T> {
 public:
  ConvTranspose2d(int64_t in, int64_t out, Size2d kernel, ConvTranspose2dLayerOptions o = {},
                  Generator& g = default_generator())
      : options(o) {
    detail::check_channels("conv_transpose2d", in, out, o.groups);
    detail::make_filters(weight, bias, {in, out / o.groups, kernel.h, kernel.w}, o.bias ? out : 0,
                         g);
    this->register_parameter("weight", weight);
    this->register_parameter("bias", bias);
  }
  Variable<T> forward(const Variable<T>& x) override {
    return conv_transpose2d(
        x, weight, bias,
        ConvTransposeOptions{options.stride, options.padding, options.output_padding,
                             options.dilation, options.groups});
  }
  [[nodiscard]] std::string describe() const override {
    return concat("ConvTranspose2d(", weight.size(0), ", ", weight.size(1) * options.groups,
                  ", kernel ", detail::text({weight.size(2), weight.size(3)}), ", stride ",
                  detail::text(options.stride), bias.defined() ? ")" : ", no bias)");
  }

  ConvTranspose2dLayerOptions options;
  Parameter<T> weight;  ///< (in, out / groups, kh, kw)
  Parameter<T> bias;    ///< (out), or undefined
};
GABLE_MODULE(extern, Conv1d)
GABLE_MODULE(extern, Conv2d)
GABLE_MODULE(extern, ConvTranspose2d)

}  // namespace gable::nn
