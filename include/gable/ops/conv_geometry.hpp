// SPDX-License-Identifier: Apache-2.0
// Sizes of convolutions and the argument structs of their kernels.
#pragma once

#include <cstdint>

#include "gable/core/cost.hpp"
#include "gable/tensor/tensor.hpp"

namespace gable {

/// A height and a width; one number means both.
struct Size2d {
  int64_t h = 1;
  int64_t w = 1;
  constexpr Size2d() = default;
  constexpr Size2d(int64_t both) : h(both), w(both) {}  // NOLINT(google-explicit-constructor)
  constexpr Size2d(int64_t height, int64_t width) : h(height), w(width) {}
  friend constexpr bool operator==(const Size2d&, const Size2d&) = default;
};

/// Zeros around an image: {all}, {vertical, horizontal}, {top, bottom, left, right}, or
/// Padding::same, which keeps the size at stride 1 (the odd one of a pair goes to the end).
struct Padding {
  int64_t top = 0;
  int64_t bottom = 0;
  int64_t left = 0;
  int64_t right = 0;
  bool keep_size = false;
  constexpr Padding() = default;
  constexpr Padding(int64_t all)  // NOLINT(google-explicit-constructor)
      : top(all), bottom(all), left(all), right(all) {}
  constexpr Padding(int64_t vertical, int64_t horizontal)
      : top(vertical), bottom(vertical), left(horizontal), right(horizontal) {}
  constexpr Padding(int64_t t, int64_t b, int64_t l, int64_t r)
      : top(t), bottom(b), left(l), right(r) {}
  static const Padding same;
};
namespace detail {
constexpr Padding same_padding() {
  Padding p;
  p.keep_size = true;
  return p;
}
}  // namespace detail
inline constexpr Padding Padding::same = detail::same_padding();

struct ConvOptions {
  Size2d stride = 1;
  Padding padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;
};
/// Of one spatial dimension.
struct Conv1dOptions {
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t dilation = 1;
  int64_t groups = 1;
};
struct ConvTransposeOptions {
  Size2d stride = 1;
  Padding padding = 0;
  Size2d output_padding = 0;
  Size2d dilation = 1;
  int64_t groups = 1;
};

/// All sizes of one convolution, in its forward sense: `in` (images, in_channels, in.h, in.w) to
/// `out` (images, out_channels, out.h, out.w). Padding below and right is implied by `out`.
struct ConvGeometry {
  int64_t images = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  Size2d in;
  Size2d out;
  Size2d kernel;
  Size2d stride;
  Size2d dilation;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t groups = 1;

  [[nodiscard]] int64_t group_in() const { return in_channels / groups; }
  [[nodiscard]] int64_t group_out() const { return out_channels / groups; }
  [[nodiscard]] int64_t taps() const { return kernel.h * kernel.w; }
  /// Inner size of the matrix product of one group.
  [[nodiscard]] int64_t depth() const { return taps() * group_in(); }
  [[nodiscard]] int64_t out_pixels() const { return images * out.h * out.w; }
  [[nodiscard]] int64_t flops() const { return 2 * out_pixels() * out_channels * depth(); }
};

namespace detail {
/// Checks everything and resolves Padding::same. `bias` may be null. Throws ShapeError.
[[nodiscard]] ConvGeometry plan_conv(const Shape& x, const Shape& weight, const Shape* bias,
                                     const ConvOptions& options, Where where);
/// The geometry whose input gradient the transposed convolution is: `x` plays its output.
[[nodiscard]] ConvGeometry plan_conv_transpose(const Shape& x, const Shape& weight,
                                               const Shape* bias,
                                               const ConvTransposeOptions& options, Where where);
/// x itself if its channels are adjacent in memory (dense channels-last or a slice of it), else
/// a counted channels-last copy.
[[nodiscard]] AnyTensor channels_inner(const AnyTensor& x);
}  // namespace detail

// Kernel arguments. Images are (N, C, H, W) with channels adjacent in memory, results dense
// channels-last; weights (O, I / groups, kh, kw) are dense channels-last; bias may have no data.

template <class T>
struct Conv2dArgs {
  static constexpr const char* name = "conv2d";
  TensorView<T> y;
  TensorView<const T> x;
  TensorView<const T> w;
  TensorView<const T> bias;
  ConvGeometry g;
  [[nodiscard]] Cost cost() const {
    const bool biased = bias.data != nullptr;
    return {.flops = biased ? y.numel() : 0,
            .matrix_flops = g.flops(),
            .bytes_read = x.bytes() + w.bytes() + (biased ? bias.bytes() : 0),
            .bytes_written = y.bytes()};
  }
};

/// dx from dy; also the transposed convolution, which may add a bias over in_channels.
template <class T>
struct Conv2dInputGradArgs {
  static constexpr const char* name = "conv2d_input_gradient";
  TensorView<T> dx;
  TensorView<const T> dy;
  TensorView<const T> w;
  TensorView<const T> bias;
  ConvGeometry g;
  [[nodiscard]] Cost cost() const {
    const bool biased = bias.data != nullptr;
    return {.flops = biased ? dx.numel() : 0,
            .matrix_flops = g.flops(),
            .bytes_read = dy.bytes() + w.bytes() + (biased ? bias.bytes() : 0),
            .bytes_written = dx.bytes()};
  }
};

/// dw in the compute type, so that 16-bit weights get float gradients.
template <class T>
struct Conv2dWeightGradArgs {
  static constexpr const char* name = "conv2d_weight_gradient";
  TensorView<Compute<T>> dw;
  TensorView<const T> x;
  TensorView<const T> dy;
  ConvGeometry g;
  [[nodiscard]] Cost cost() const {
    return {.matrix_flops = g.flops(),
            .bytes_read = x.bytes() + dy.bytes(),
            .bytes_written = dw.bytes()};
  }
};

}  // namespace gable
