// SPDX-License-Identifier: Apache-2.0
// Convolutions.
#include "gable/ops/conv.hpp"

#include "op_case.hpp"

namespace gable::cases {
namespace {

using Tensors = std::vector<Tensor<double>>;

// Seven plain loops, straight from the definition.
Tensor<double> naive_conv(const Tensors& in, const ConvOptions& o, const Padding& p) {
  const Tensor<double>& x = in[0];
  const Tensor<double>& w = in[1];
  const int64_t oh =
      (x.size(2) + p.top + p.bottom - o.dilation.h * (w.size(2) - 1) - 1) / o.stride.h + 1;
  const int64_t ow =
      (x.size(3) + p.left + p.right - o.dilation.w * (w.size(3) - 1) - 1) / o.stride.w + 1;
  const int64_t group_in = w.size(1);
  const int64_t group_out = w.size(0) / o.groups;
  Tensor<double> y = zeros<double>({x.size(0), w.size(0), oh, ow});
  for (int64_t n = 0; n < y.size(0); ++n)
    for (int64_t c = 0; c < y.size(1); ++c)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = in.size() > 2 ? in[2](c) : 0;
          for (int64_t d = 0; d < group_in; ++d)
            for (int64_t a = 0; a < w.size(2); ++a)
              for (int64_t b = 0; b < w.size(3); ++b) {
                const int64_t u = i * o.stride.h - p.top + a * o.dilation.h;
                const int64_t v = j * o.stride.w - p.left + b * o.dilation.w;
                if (u < 0 || v < 0 || u >= x.size(2) || v >= x.size(3)) continue;
                sum += x(n, c / group_out * group_in + d, u, v) * w(c, d, a, b);
              }
          y(n, c, i, j) = sum;
        }
  return y;
}

// Scatters every input value through the kernel.
Tensor<double> naive_transpose(const Tensors& in, const ConvTransposeOptions& o) {
  const Tensor<double>& x = in[0];
  const Tensor<double>& w = in[1];
  const Padding& p = o.padding;
  const int64_t oh = (x.size(2) - 1) * o.stride.h - p.top - p.bottom +
                     o.dilation.h * (w.size(2) - 1) + o.output_padding.h + 1;
  const int64_t ow = (x.size(3) - 1) * o.stride.w - p.left - p.right +
                     o.dilation.w * (w.size(3) - 1) + o.output_padding.w + 1;
  const int64_t group_in = x.size(1) / o.groups;
  const int64_t group_out = w.size(1);
  Tensor<double> y = zeros<double>({x.size(0), group_out * o.groups, oh, ow});
  if (in.size() > 2)
    for (int64_t c = 0; c < y.size(1); ++c) y.select(1, c).fill_(in[2](c));
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t c = 0; c < x.size(1); ++c)
      for (int64_t i = 0; i < x.size(2); ++i)
        for (int64_t j = 0; j < x.size(3); ++j)
          for (int64_t d = 0; d < group_out; ++d)
            for (int64_t a = 0; a < w.size(2); ++a)
              for (int64_t b = 0; b < w.size(3); ++b) {
                const int64_t u = i * o.stride.h - p.top + a * o.dilation.h;
                const int64_t v = j * o.stride.w - p.left + b * o.dilation.w;
                if (u < 0 || v < 0 || u >= oh || v >= ow) continue;
                y(n, c / group_in * group_out + d, u, v) += x(n, c, i, j) * w(c, d, a, b);
              }
  return y;
}

void loosen(OpCase& c) {
  c.float32 = {1e-4, 1e-5};
  c.float16 = {3e-2, 4e-3};
  c.bfloat16 = {0.3, 2e-2};
}

OpCase conv_case(const std::string& name, std::vector<Input> inputs, const ConvOptions& o) {
  Padding p = o.padding;
  if (p.keep_size) {
    const int64_t h = o.dilation.h * (inputs[1].shape[2] - 1);
    const int64_t w = o.dilation.w * (inputs[1].shape[3] - 1);
    p = Padding(h / 2, h - h / 2, w / 2, w - w / 2);
  }
  OpCase c = differentiable(
      "conv2d/" + name, std::move(inputs),
      [o](const auto& in) {
        return in.size() > 2 ? conv2d(in[0], in[1], in[2], o) : conv2d(in[0], in[1], o);
      },
      [o, p](const Tensors& in) { return naive_conv(in, o, p); });
  loosen(c);
  return c;
}

OpCase conv1d_case(const std::string& name, std::vector<Input> inputs, const Conv1dOptions& o) {
  OpCase c = differentiable(
      "conv1d/" + name, std::move(inputs),
      [o](const auto& in) {
        return in.size() > 2 ? conv1d(in[0], in[1], in[2], o) : conv1d(in[0], in[1], o);
      },
      [o](const Tensors& in) {
        Tensors flat = in;
        flat[0] = in[0].unsqueeze(2);
        flat[1] = in[1].unsqueeze(2);
        const ConvOptions options{{1, o.stride}, 0, {1, o.dilation}, o.groups};
        return naive_conv(flat, options, Padding(0, o.padding)).squeeze(2);
      });
  loosen(c);
  return c;
}

OpCase transpose_case(const std::string& name, std::vector<Input> inputs,
                      const ConvTransposeOptions& o) {
  OpCase c = differentiable(
      "conv_transpose2d/" + name, std::move(inputs),
      [o](const auto& in) {
        return in.size() > 2 ? conv_transpose2d(in[0], in[1], in[2], o)
                             : conv_transpose2d(in[0], in[1], o);
      },
      [o](const Tensors& in) { return naive_transpose(in, o); });
  loosen(c);
  return c;
}

const Register register_conv([](const Register::Add& add) {
  add(conv_case("3x3", {{{2, 3, 6, 5}}, {{4, 3, 3, 3}}}, {.padding = 1}));
  add(conv_case("bias", {{{1, 2, 4, 4}}, {{3, 2, 3, 3}}, {{3}}}, {}));
  add(conv_case("stride2", {{{2, 3, 7, 6}}, {{5, 3, 3, 3}}}, {.stride = 2, .padding = 1}));
  add(conv_case("stride3_kernel2", {{{1, 2, 8, 7}}, {{2, 2, 2, 2}}}, {.stride = 3}));
  add(conv_case("1x1", {{{2, 5, 3, 4}}, {{6, 5, 1, 1}}, {{6}}}, {}));
  add(conv_case("1x1_stride2", {{{2, 4, 5, 6}}, {{3, 4, 1, 1}}}, {.stride = 2}));
  add(conv_case("1x1_padded", {{{1, 2, 3, 3}}, {{2, 2, 1, 1}}, {{2}}}, {.padding = 1}));
  add(conv_case("asymmetric", {{{1, 2, 4, 5}}, {{3, 2, 3, 2}}}, {.padding = {2, 0, 1, 3}}));
  add(conv_case("same_even", {{{1, 2, 5, 4}}, {{2, 2, 4, 2}}}, {.padding = Padding::same}));
  add(conv_case("same_dilated", {{{1, 2, 7, 8}}, {{2, 2, 3, 5}}},
                {.padding = Padding::same, .dilation = {2, 3}}));
  add(conv_case("dilated_stride", {{{1, 2, 9, 8}}, {{3, 2, 3, 2}}},
                {.stride = {2, 1}, .padding = {1, 2}, .dilation = {2, 3}}));
  add(conv_case("groups", {{{2, 6, 5, 4}}, {{9, 2, 3, 3}}, {{9}}}, {.padding = 1, .groups = 3}));
  add(conv_case("depthwise", {{{2, 5, 6, 5}}, {{5, 1, 3, 3}}, {{5}}},
                {.stride = 2, .padding = 1, .groups = 5}));
  add(conv_case("depth_multiplier", {{{1, 3, 5, 5}}, {{6, 1, 3, 3}}}, {.padding = 1, .groups = 3}));
  add(conv_case("padding_above_kernel", {{{1, 1, 2, 2}}, {{2, 1, 3, 3}}}, {.padding = 4}));
  add(conv_case("one_value", {{{1, 1, 1, 1}}, {{1, 1, 1, 1}}}, {}));
  add(conv_case("no_images", {{{0, 3, 5, 5}}, {{2, 3, 3, 3}}}, {}));
  // More than one block, and channels beyond a vector.
  OpCase blocks =
      conv_case("blocks", {{{5, 19, 13, 11}}, {{37, 19, 3, 3}}, {{37}}}, {.padding = 1});
  blocks.gradient = false;
  blocks.float32 = {1e-3, 1e-5};
  blocks.float16 = {0.15, 4e-3};
  blocks.bfloat16 = {1.0, 2e-2};
  blocks.benchmark = true;
  add(blocks);
  add(conv1d_case("stride", {{{2, 3, 9}}, {{4, 3, 3}}, {{4}}}, {.stride = 2, .padding = 1}));
  add(conv1d_case("dilated", {{{1, 4, 8}}, {{2, 2, 3}}}, {.dilation = 2, .groups = 2}));
  add(transpose_case("stride2", {{{2, 3, 3, 4}}, {{3, 2, 3, 3}}, {{2}}},
                     {.stride = 2, .padding = 1, .output_padding = 1}));
  add(transpose_case("plain", {{{1, 2, 3, 3}}, {{2, 3, 2, 3}}}, {}));
  add(transpose_case("groups_dilated", {{{1, 4, 3, 3}}, {{4, 3, 3, 2}}, {{6}}},
                     {.stride = {1, 2}, .padding = {1, 0, 2, 1}, .dilation = {2, 1}, .groups = 2}));
  add(transpose_case("depthwise", {{{1, 3, 3, 3}}, {{3, 1, 3, 3}}, {{3}}},
                     {.stride = 2, .groups = 3}));
});

}  // namespace
}  // namespace gable::cases
