// SPDX-License-Identifier: Apache-2.0
// Images as convolutions see them, and the operands of a convolution's kernels.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>

#include "gable/ops/conv_geometry.hpp"
#include "runtime/scratch.hpp"
#include "runtime/strided_copy.hpp"

namespace gable::cuda {

/// (N, C, H, W) with adjacent channels; strides of images, rows and pixels.
template <class T>
struct Image {
  T* data = nullptr;
  int64_t images = 0;
  int64_t channels = 0;
  int64_t h = 0;
  int64_t w = 0;
  int64_t image_step = 0;
  int64_t row_step = 0;
  int64_t pixel_step = 0;

  Image() = default;
  /// Steps that no index uses (sizes of 1) become those of a matrix of pixels.
  explicit Image(const TensorView<T>& x)
      : data(x.data), images(x.size(0)), channels(x.size(1)), h(x.size(2)), w(x.size(3)) {
    pixel_step = channels;
    for (int d : {0, 2, 3})
      if (x.size(d) > 1) pixel_step = x.stride(d);
    row_step = h > 1 ? x.stride(2) : w * pixel_step;
    image_step = images > 1 ? x.stride(0) : h * row_step;
  }
  /// True where all pixels are the rows of one matrix, pixel_step apart.
  [[nodiscard]] bool is_matrix() const {
    return pixel_step >= channels && row_step == w * pixel_step && image_step == h * row_step;
  }
};

/// The pixels of an image as rows of a matrix, copied if they are none.
template <class T>
class PixelRows {
 public:
  PixelRows(const TensorView<const T>& x, const Stream& stream) {
    const Image<const T> image(x);
    data_ = image.data;
    step_ = image.pixel_step;
    if (image.is_matrix()) return;
    memory_.emplace(x.numel(), stream);
    strided_copy(
        any_view(TensorView<T>{memory_->data(), Layout(x.shape(), MemoryFormat::channels_last)}),
        any_view(x), stream);
    data_ = memory_->data();
    step_ = image.channels;
  }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] int64_t step() const { return step_; }

 private:
  const T* data_ = nullptr;
  int64_t step_ = 0;
  std::optional<Scratch<T>> memory_;
};

/// True for one input and one output channel a group.
inline bool is_depthwise(const ConvGeometry& g) {
  return g.groups > 1 && g.groups == g.in_channels && g.groups == g.out_channels;
}

/// All that a choice of engine or plan may depend on, but for the kernel and its dtype.
struct ConvKey {
  std::array<int64_t, 32> values = {};
  int used = 0;

  void add(int64_t value) { values[static_cast<size_t>(used++)] = value; }
  template <class T>
  void add(const Image<T>& image) {
    add(image.image_step);
    add(image.row_step);
    add(image.pixel_step);
    add(alignment(image.data));
  }
  /// Alignment of an address, up to 16 bytes.
  static int64_t alignment(const void* data) {
    const uintptr_t bits = reinterpret_cast<uintptr_t>(data) | 16U;
    return static_cast<int64_t>(bits & (~bits + 1));
  }
  friend auto operator<=>(const ConvKey&, const ConvKey&) = default;
};

template <class T>
[[nodiscard]] ConvKey conv_key(const Conv2dArgs<T>& args, Device device);
template <class T>
[[nodiscard]] ConvKey conv_key(const Conv2dInputGradArgs<T>& args, Device device);
template <class T>
[[nodiscard]] ConvKey conv_key(const Conv2dWeightGradArgs<T>& args, Device device);

}  // namespace gable::cuda
