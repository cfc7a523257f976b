// SPDX-License-Identifier: Apache-2.0
// Convolution as products with the im2col matrix, made a bounded block at a time; groups are the
// batch of the product. 1x1 convolutions of stride 1 need no columns.
#include <algorithm>

#include "conv/columns.hpp"
#include "conv/plan.hpp"
#include "gemm/gemm.hpp"

namespace gable::cuda {

namespace {

constexpr int64_t kColumnBytes = int64_t{256} << 20;
constexpr int64_t kElements = (int64_t{1} << 31) - 1;  // of one call of the column kernels

// Output and input pixels are the same.
bool is_pointwise(const ConvGeometry& g) {
  return g.taps() == 1 && g.stride == Size2d(1) && g.pad_top == 0 && g.pad_left == 0 &&
         g.in == g.out;
}

// Rows of the im2col matrix that a block may have.
int64_t block_rows(const ConvGeometry& g, int64_t element_size) {
  const int64_t row = std::max<int64_t>(1, g.groups * g.depth());
  // A block counts pixels from the start of its first image.
  const int64_t most = std::min(kElements - g.out.h * g.out.w, kElements / row);
  check<Error>(most > 0, "conv2d",
               "expected a filter and an image of fewer than 2^31 elements, got ", row, " and ",
               g.out.h * g.out.w, " pixels");
  return std::clamp<int64_t>(kColumnBytes / (row * element_size), 1, most);
}

template <class T>
Matrix<const T> weights(const ConvGeometry& g, const T* w) {
  return {w, g.depth(), 1, g.group_out() * g.depth()};
}
// Rows of the im2col matrix.
template <class T>
Matrix<T> column_rows(const ConvGeometry& g, T* columns) {
  return {columns, g.groups * g.depth(), 1, g.depth()};
}
// Pixels, `step` apart, of images whose groups have `channels` each.
template <class T>
Matrix<T> pixel_rows(T* data, int64_t step, int64_t channels) {
  return {data, step, 1, channels};
}
template <class T>
Bias<T> bias_of(const TensorView<const T>& bias, int64_t channels) {
  if (bias.data == nullptr) return {};
  return {bias.data, bias.stride(0), channels * bias.stride(0)};
}

}  // namespace

template <class T>
void im2col_conv(const Conv2dArgs<T>& args, const Stream& stream) {
  const ConvGeometry& g = args.g;
  const int64_t pixels = g.out_pixels();
  Gemm<T, T> product;
  product.n = g.group_out();
  product.k = g.depth();
  product.batch = g.groups;
  product.b = weights(g, args.w.data).transposed();
  product.bias = bias_of(args.bias, g.group_out());
  const Image<const T> x(args.x);
  if (is_pointwise(g) && x.is_matrix()) {
    product.m = pixels;
    product.a = pixel_rows(x.data, x.pixel_step, g.group_in());
    product.out = pixel_rows(args.y.data, g.out_channels, g.group_out());
    gemm(product, stream);
    return;
  }
  const int64_t rows = std::min(pixels, block_rows(g, sizeof(T)));
  const Scratch<T> columns(rows * g.groups * g.depth(), stream);
  product.a = column_rows<const T>(g, columns.data());
  for (int64_t begin = 0; begin < pixels; begin += rows) {
    const int64_t end = std::min(pixels, begin + rows);
    im2col(g, x, begin, end, columns.data(), stream);
    product.m = end - begin;
    product.out = pixel_rows(args.y.data + begin * g.out_channels, g.out_channels, g.group_out());
    gemm(product, stream);
  }
}

template <class T>
void im2col_conv(const Conv2dInputGradArgs<T>& args, const Stream& stream) {
  using C = Compute<T>;
  const ConvGeometry& g = args.g;
  const PixelRows<T> dy(args.dy, stream);
  if (is_pointwise(g)) {
    Gemm<T, T> product;
    product.m = g.out_pixels();
    product.n = g.group_in();
    product.k = g.group_out();
    product.batch = g.groups;
    product.a = pixel_rows(dy.data(), dy.step(), g.group_out());
    product.b = weights(g, args.w.data);
    product.out = pixel_rows(args.dx.data, g.in_channels, g.group_in());
    product.bias = bias_of(args.bias, g.group_in());
    gemm(product, stream);
    return;
  }
  // Whole images, since neighbouring output pixels add to the same input pixels.
  const int64_t plane = g.out.h * g.out.w;
  const int64_t size = g.in.h * g.in.w * g.in_channels;
  check<Error>(size <= kElements, Conv2dInputGradArgs<T>::name,
               "expected images of fewer than 2^31 elements, got ", size);
  const int64_t by_columns = block_rows(g, sizeof(C)) / std::max<int64_t>(1, plane);
  const int64_t images = std::clamp<int64_t>(std::min(by_columns, kElements / size), 1,
                                             std::max<int64_t>(1, g.images));
  const Scratch<C> columns(images * plane * g.groups * g.depth(), stream);
  Gemm<T, C> product;
  product.n = g.depth();
  product.k = g.group_out();
  product.batch = g.groups;
  product.b = weights(g, args.w.data);
  product.out = column_rows(g, columns.data());
  for (int64_t first = 0; first < g.images; first += images) {
    const int64_t count = std::min(images, g.images - first);
    product.m = count * plane;
    product.a = pixel_rows(dy.data() + first * plane * dy.step(), dy.step(), g.group_out());
    gemm(product, stream);
    col2im<T>(g, count, columns.data(), args.bias, args.dx.data + first * size, stream);
  }
}

template <class T>
void im2col_conv(const Conv2dWeightGradArgs<T>& args, const Stream& stream) {
  using C = Compute<T>;
  const ConvGeometry& g = args.g;
  const int64_t pixels = g.out_pixels();
  const PixelRows<T> dy(args.dy, stream);
  Gemm<T, C> product;
  product.m = g.group_out();
  product.n = g.depth();
  product.batch = g.groups;
  product.out = {args.dw.data, g.depth(), 1, g.group_out() * g.depth()};
  const Image<const T> x(args.x);
  if (pixels == 0 || (is_pointwise(g) && x.is_matrix())) {
    product.k = pixels;
    product.a = pixel_rows(dy.data(), dy.step(), g.group_out()).transposed();
    product.b = pixel_rows(x.data, x.pixel_step, g.group_in());
    gemm(product, stream);
    return;
  }
  // One block after another, so that sums run in one order.
  const int64_t rows = std::min(pixels, block_rows(g, sizeof(T)));
  const Scratch<T> columns(rows * g.groups * g.depth(), stream);
  product.b = column_rows<const T>(g, columns.data());
  for (int64_t begin = 0; begin < pixels; begin += rows) {
    const int64_t end = std::min(pixels, begin + rows);
    im2col(g, x, begin, end, columns.data(), stream);
    product.k = end - begin;
    product.a = pixel_rows(dy.data() + begin * dy.step(), dy.step(), g.group_out()).transposed();
    product.accumulate = begin > 0;
    gemm(product, stream);
  }
}

#define GABLE_IM2COL(...) template void im2col_conv(const __VA_ARGS__&, const Stream&);
GABLE_CONV_ARGS(GABLE_IM2COL)

}  // namespace gable::cuda
