// SPDX-License-Identifier: Apache-2.0
// Convolutions: conv1d, conv2d, conv_transpose2d, with gradients. Cross-correlation, as in other
// libraries; logical (N, C, H, W), fastest and copy-free where stored channels-last.
#pragma once

#include <cstdint>

#include "gable/ops/autocast.hpp"
#include "gable/ops/conv_geometry.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/sum_to.hpp"

namespace gable {

namespace detail {

template <class T>
TensorView<const T> optional_view(const Tensor<T>& x) {
  return x.defined() ? x.view() : TensorView<const T>{};
}
template <class T>
Tensor<T> dense_weight(const Tensor<T>& weight) {
  return weight.contiguous(MemoryFormat::channels_last);
}
template <class T>
Tensor<T> image(const Shape& shape, Device device) {
  return Tensor<T>(shape, device, MemoryFormat::channels_last);
}

template <class T>
Tensor<T> run_conv(const ConvGeometry& g, const Tensor<T>& x, const Tensor<T>& weight,
                   const Tensor<T>& bias) {
  Tensor<T> y = image<T>({g.images, g.out_channels, g.out.h, g.out.w}, x.device());
  if (y.numel() > 0)
    launch(x.device(),
           Conv2dArgs<T>{y.write_view("conv2d"), x.view(), weight.view(), optional_view(bias), g});
  return y;
}

template <class T>
Tensor<T> run_conv_input_grad(const ConvGeometry& g, const Tensor<T>& dy, const Tensor<T>& weight,
                              const Tensor<T>& bias) {
  Tensor<T> dx = image<T>({g.images, g.in_channels, g.in.h, g.in.w}, dy.device());
  if (dx.numel() > 0)
    launch(dy.device(), Conv2dInputGradArgs<T>{dx.write_view("conv2d"), dy.view(), weight.view(),
                                               optional_view(bias), g});
  return dx;
}

template <class T>
Tensor<Compute<T>> run_conv_weight_grad(const ConvGeometry& g, const Tensor<T>& x,
                                        const Tensor<T>& dy) {
  auto dw = image<Compute<T>>({g.out_channels, g.group_in(), g.kernel.h, g.kernel.w}, x.device());
  if (dw.numel() > 0)
    launch(x.device(), Conv2dWeightGradArgs<T>{dw.write_view("conv2d"), x.view(), dy.view(), g});
  return dw;
}

/// Sums over all but the channels.
template <class T>
Tensor<T> conv_bias_grad(const Tensor<T>& dy) {
  return sum_to(dy.permute({0, 2, 3, 1}), Shape{dy.size(1)});
}

}  // namespace detail

/// One- and two-dimensional convolution: (x, weight) or (x, weight, bias). The weight
/// gradient comes as Compute<T>.
template <FloatElement T, int SpatialRank>
struct ConvOp : OpBase {
  static constexpr const char* name = SpatialRank == 1 ? "conv1d" : "conv2d";
  ConvOptions options;
  ConvGeometry g;
  Saved<T> saved_x;
  Saved<T> saved_weight;

  explicit ConvOp(const ConvOptions& o) : options(o) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight) { return run(x, weight, {}); }
  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    return run(x, weight, bias);
  }

  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T> gradient(detail::channels_inner(spread(dy)));
    Grads<3> grads;
    if (needs(0))
      grads[0] = gather(detail::run_conv_input_grad(g, gradient, saved_weight.get(name), {}));
    if (needs(1)) grads[1] = gather(detail::run_conv_weight_grad(g, saved_x.get(name), gradient));
    if (needs(2)) grads[2] = detail::conv_bias_grad(gradient);
    return grads;
  }

 private:
  // A 1-d image is one row.
  template <class U>
  static Tensor<U> spread(const Tensor<U>& x) {
    if constexpr (SpatialRank == 2) return x;
    return x.rank() == 3 ? x.unsqueeze(2) : x;
  }
  template <class U>
  static Tensor<U> gather(const Tensor<U>& x) {
    if constexpr (SpatialRank == 2) return x;
    return x.squeeze(2);
  }

  Tensor<T> run(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    if constexpr (SpatialRank == 1)
      check(x.rank() == 3 && weight.rank() == 3, name,
            "expected an input of shape (N, C, L) and a weight of shape (O, C / groups, K), got ",
            x.shape(), " and ", weight.shape());
    const Tensor<T> x4 = spread(x);
    const Tensor<T> w4 = spread(weight);
    g = detail::plan_conv(x4.shape(), w4.shape(), bias.defined() ? &bias.shape() : nullptr, options,
                          name);
    detail::check_same_device(name, x, weight);
    if (bias.defined()) detail::check_same_device(name, x, bias);
    const Tensor<T> input(detail::channels_inner(x4));
    const Tensor<T> filters = detail::dense_weight(w4);
    Tensor<T> y = detail::run_conv(g, input, filters, bias);
    if (needs(1)) saved_x.save(input);
    if (needs(0)) saved_weight.save(filters);
    return gather(y);
  }
};

template <FloatElement T>
struct ConvTransposeOp : OpBase {
  static constexpr const char* name = "conv_transpose2d";
  ConvTransposeOptions options;
  ConvGeometry g;
  Saved<T> saved_x;
  Saved<T> saved_weight;

  explicit ConvTransposeOp(const ConvTransposeOptions& o) : options(o) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight) { return run(x, weight, {}); }
  Tensor<T> forward(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    return run(x, weight, bias);
  }

  Grads<3> backward(const Tensor<T>& dy) {
    const Tensor<T> gradient(detail::channels_inner(dy));
    Grads<3> grads;
    if (needs(0)) grads[0] = detail::run_conv(g, gradient, saved_weight.get(name), {});
    if (needs(1)) grads[1] = detail::run_conv_weight_grad(g, gradient, saved_x.get(name));
    if (needs(2)) grads[2] = detail::conv_bias_grad(gradient);
    return grads;
  }

 private:
  Tensor<T> run(const Tensor<T>& x, const Tensor<T>& weight, const Tensor<T>& bias) {
    g = detail::plan_conv_transpose(x.shape(), weight.shape(),
                                    bias.defined() ? &bias.shape() : nullptr, options, name);
    detail::check_same_device(name, x, weight);
    if (bias.defined()) detail::check_same_device(name, x, bias);
    const Tensor<T> input(detail::channels_inner(x));
    const Tensor<T> filters = detail::dense_weight(weight);
    Tensor<T> y = detail::run_conv_input_grad(g, input, filters, bias);
    if (needs(1)) saved_x.save(input);
    if (needs(0)) saved_weight.save(filters);
    return y;
  }
};

namespace detail {
template <int SpatialRank>
struct RunConv {
  ConvOptions options;
  template <class T, class... Xs>
  auto operator()(TypeTag<T>, const Xs&... in) const {
    return apply(ConvOp<T, SpatialRank>(options), in...);
  }
};
struct RunConvTranspose {
  ConvTransposeOptions options;
  template <class T, class... Xs>
  auto operator()(TypeTag<T>, const Xs&... in) const {
    return apply(ConvTransposeOp<T>(options), in...);
  }
};
}  // namespace detail

/// x (N, C, H, W), weight (O, C / groups, kh, kw): (N, O, OH, OW), stored channels-last, with
/// OH = floor((H + top + bottom - dilation (kh - 1) - 1) / stride) + 1. Padding may exceed the
/// kernel. An x whose channels are not adjacent in memory is converted once (counted).
/// Throws ShapeError, before anything is written.
template <TensorLike X, TensorLike W>
auto conv2d(const X& x, const W& weight, const ConvOptions& options = {}) {
  return detail::autocast(detail::RunConv<2>{options}, x, weight);
}
/// With a bias (O); an undefined bias is none.
template <TensorLike X, TensorLike W, TensorLike B>
auto conv2d(const X& x, const W& weight, const B& bias, const ConvOptions& options = {}) {
  return detail::autocast_biased(detail::RunConv<2>{options}, x, weight, bias);
}

/// x (N, C, L), weight (O, C / groups, K): (N, O, OL).
template <TensorLike X, TensorLike W>
auto conv1d(const X& x, const W& weight, const Conv1dOptions& o = {}) {
  const ConvOptions options{{1, o.stride}, {0, o.padding}, {1, o.dilation}, o.groups};
  return detail::autocast(detail::RunConv<1>{options}, x, weight);
}
template <TensorLike X, TensorLike W, TensorLike B>
auto conv1d(const X& x, const W& weight, const B& bias, const Conv1dOptions& o = {}) {
  const ConvOptions options{{1, o.stride}, {0, o.padding}, {1, o.dilation}, o.groups};
  return detail::autocast_biased(detail::RunConv<1>{options}, x, weight, bias);
}

/// The adjoint of conv2d in x: x (N, C, H, W), weight (C, O / groups, kh, kw): (N, O, OH, OW) with
/// OH = (H - 1) stride - top - bottom + dilation (kh - 1) + output_padding + 1.
template <TensorLike X, TensorLike W>
auto conv_transpose2d(const X& x, const W& weight, const ConvTransposeOptions& options = {}) {
  return detail::autocast(detail::RunConvTranspose{options}, x, weight);
}
template <TensorLike X, TensorLike W, TensorLike B>
auto conv_transpose2d(const X& x, const W& weight, const B& bias,
                      const ConvTransposeOptions& options = {}) {
  return detail::autocast_biased(detail::RunConvTranspose{options}, x, weight, bias);
}

}  // namespace gable
