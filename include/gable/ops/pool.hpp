// SPDX-License-Identifier: Apache-2.0
// Pooling of (N, C, H, W) images: max, average, adaptive average, with gradients. Results are
// stored channels-last; an x whose channels are not adjacent is converted once (counted).
#pragma once

#include <cstdint>

#include "gable/ops/conv_geometry.hpp"
#include "gable/ops/op.hpp"

namespace gable {

struct MaxPoolOptions {
  Size2d stride = 0;  ///< 0: the kernel's size
  Padding padding = 0;
  Size2d dilation = 1;
  bool ceil_mode = false;  ///< a last, partial window where one fits that begins inside
};
struct AvgPoolOptions {
  Size2d stride = 0;
  Padding padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< padding counts in the divisor; windows past it never do
};

/// All sizes of one pooling call.
struct PoolGeometry {
  int64_t images = 0;
  int64_t channels = 0;
  Size2d in;
  Size2d out;
  Size2d kernel;
  Size2d stride;
  Size2d dilation;
  Padding padding;
  bool count_include_pad = true;
  bool adaptive = false;  ///< windows of sizes in / out, rounded outwards; kernel is unused
  [[nodiscard]] int64_t taps() const { return kernel.h * kernel.w; }
};

/// y = max of each window; padding never counts as a value, NaN wins. The number of the winning
/// tap (row-major in the window) goes to taps8 or taps32 (no data: not wanted).
template <class T>
struct MaxPool2dArgs {
  static constexpr const char* name = "max_pool2d";
  TensorView<T> y;
  TensorView<uint8_t> taps8;
  TensorView<int32_t> taps32;
  TensorView<const T> x;
  PoolGeometry g;
  [[nodiscard]] Cost cost() const {
    return {.flops = y.numel() * g.taps(),
            .bytes_read = x.bytes(),
            .bytes_written = y.bytes() + (taps8.data != nullptr ? taps8.bytes() : 0) +
                             (taps32.data != nullptr ? taps32.bytes() : 0)};
  }
};
template <class T>
struct MaxPool2dBackwardArgs {
  static constexpr const char* name = "max_pool2d_backward";
  TensorView<T> dx;
  TensorView<const T> dy;
  TensorView<const uint8_t> taps8;
  TensorView<const int32_t> taps32;
  PoolGeometry g;
  [[nodiscard]] Cost cost() const {
    return {
        .flops = dy.numel(), .bytes_read = dy.bytes() + dy.numel(), .bytes_written = dx.bytes()};
  }
};

/// Means of windows, accumulated in double.
template <class T>
struct AvgPool2dArgs {
  static constexpr const char* name = "avg_pool2d";
  TensorView<T> y;
  TensorView<const T> x;
  PoolGeometry g;
  [[nodiscard]] Cost cost() const {
    const int64_t adds = g.adaptive ? x.numel() : y.numel() * g.taps();
    return {.flops = adds + y.numel(), .bytes_read = x.bytes(), .bytes_written = y.bytes()};
  }
};
template <class T>
struct AvgPool2dBackwardArgs {
  static constexpr const char* name = "avg_pool2d_backward";
  TensorView<T> dx;
  TensorView<const T> dy;
  PoolGeometry g;
  [[nodiscard]] Cost cost() const {
    const int64_t adds = g.adaptive ? dx.numel() : dy.numel() * g.taps();
    return {.flops = adds + dy.numel(), .bytes_read = dy.bytes(), .bytes_written = dx.bytes()};
  }
};

namespace detail {
[[nodiscard]] PoolGeometry plan_pool(const Shape& x, Size2d kernel, Size2d stride,
                                     const Padding& padding, Size2d dilation, bool ceil_mode,
                                     Where where);
[[nodiscard]] PoolGeometry plan_adaptive_pool(const Shape& x, Size2d out, Where where);
template <class T>
Tensor<T> pooled(const PoolGeometry& g, Size2d size, Device device) {
  return Tensor<T>({g.images, g.channels, size.h, size.w}, device, MemoryFormat::channels_last);
}
}  // namespace detail

template <FloatElement T>
struct MaxPool2dOp : OpBase {
  static constexpr const char* name = "max_pool2d";
  Size2d kernel;
  MaxPoolOptions options;
  PoolGeometry g;
  Tensor<uint8_t> taps8;
  Tensor<int32_t> taps32;

  MaxPool2dOp(Size2d k, const MaxPoolOptions& o) : kernel(k), options(o) {}

  Tensor<T> forward(const Tensor<T>& x) {
    g = detail::plan_pool(x.shape(), kernel, options.stride, options.padding, options.dilation,
                          options.ceil_mode, name);
    const Tensor<T> input(detail::channels_inner(x));
    Tensor<T> y = detail::pooled<T>(g, g.out, x.device());
    MaxPool2dArgs<T> args{y.write_view(name), {}, {}, input.view(), g};
    if (recording()) {
      if (g.taps() <= 256)
        args.taps8 = (taps8 = detail::pooled<uint8_t>(g, g.out, x.device())).write_view(name);
      else
        args.taps32 = (taps32 = detail::pooled<int32_t>(g, g.out, x.device())).write_view(name);
    }
    if (y.numel() > 0) launch(x.device(), args);
    return y;
  }

  Grads<1> backward(const Tensor<T>& dy) {
    const Tensor<T> gradient(detail::channels_inner(dy));
    Tensor<T> dx = detail::pooled<T>(g, g.in, dy.device());
    if (dx.numel() > 0)
      launch(dy.device(), MaxPool2dBackwardArgs<T>{
                              dx.write_view(name), gradient.view(),
                              taps8.defined() ? taps8.view() : TensorView<const uint8_t>{},
                              taps32.defined() ? taps32.view() : TensorView<const int32_t>{}, g});
    return {dx};
  }
};

template <FloatElement T>
struct AvgPool2dOp : OpBase {
  static constexpr const char* name = "avg_pool2d";
  Size2d size;  ///< of the kernel, or of the result if adaptive
  AvgPoolOptions options;
  bool adaptive;
  PoolGeometry g;

  AvgPool2dOp(Size2d s, const AvgPoolOptions& o, bool by_result)
      : size(s), options(o), adaptive(by_result) {}

  Tensor<T> forward(const Tensor<T>& x) {
    g = adaptive ? detail::plan_adaptive_pool(x.shape(), size, "adaptive_avg_pool2d")
                 : detail::plan_pool(x.shape(), size, options.stride, options.padding, 1,
                                     options.ceil_mode, name);
    g.count_include_pad = options.count_include_pad;
    const Tensor<T> input(detail::channels_inner(x));
    Tensor<T> y = detail::pooled<T>(g, g.out, x.device());
    if (y.numel() > 0) launch(x.device(), AvgPool2dArgs<T>{y.write_view(name), input.view(), g});
    return y;
  }

  Grads<1> backward(const Tensor<T>& dy) {
    const Tensor<T> gradient(detail::channels_inner(dy));
    Tensor<T> dx = detail::pooled<T>(g, g.in, dy.device());
    if (dx.numel() > 0)
      launch(dy.device(), AvgPool2dBackwardArgs<T>{dx.write_view(name), gradient.view(), g});
    return {dx};
  }
};

/// Maximum of each window; ties go to the first value, NaN wins. Padding is at most half the
/// kernel and never counts as a value. Throws ShapeError.
template <FloatTensorLike X>
auto max_pool2d(const X& x, Size2d kernel, const MaxPoolOptions& options = {}) {
  return apply(MaxPool2dOp<element_of<X>>(kernel, options), x);
}
/// Mean of each window.
template <FloatTensorLike X>
auto avg_pool2d(const X& x, Size2d kernel, const AvgPoolOptions& options = {}) {
  return apply(AvgPool2dOp<element_of<X>>(kernel, options, false), x);
}
/// Means over windows that split the image into `size` parts, from floor(i in / out) to
/// ceil((i + 1) in / out); size 1 is global average pooling.
template <FloatTensorLike X>
auto adaptive_avg_pool2d(const X& x, Size2d size) {
  return apply(AvgPool2dOp<element_of<X>>(size, {}, true), x);
}

}  // namespace gable
