// SPDX-License-Identifier: Apache-2.0
// Sizes and checks of convolutions.
#include <algorithm>

#include "gable/ops/conv_geometry.hpp"

namespace gable::detail {

namespace {

// Keeps sums and products of sizes, strides and padding within 64 bits.
constexpr int64_t kMost = int64_t{1} << 30;

void check_options(Size2d stride, const Padding& p, Size2d dilation, int64_t groups, Where where) {
  check(stride.h >= 1 && stride.w >= 1, where, "expected strides of at least 1, got (", stride.h,
        ", ", stride.w, ")");
  check(dilation.h >= 1 && dilation.w >= 1, where, "expected dilations of at least 1, got (",
        dilation.h, ", ", dilation.w, ")");
  check(std::min({p.top, p.bottom, p.left, p.right}) >= 0, where,
        "expected padding of at least 0, got top ", p.top, ", bottom ", p.bottom, ", left ", p.left,
        ", right ", p.right);
  check(groups >= 1, where, "expected at least 1 group, got ", groups);
  check(std::max({stride.h, stride.w, dilation.h, dilation.w, p.top, p.bottom, p.left, p.right,
                  groups}) <= kMost,
        where, "expected strides, dilations, padding and groups of at most ", kMost,
        ", got strides (", stride.h, ", ", stride.w, "), dilations (", dilation.h, ", ", dilation.w,
        "), padding ", p.top, ", ", p.bottom, ", ", p.left, ", ", p.right, ", ", groups, " groups");
}

void check_ranks(const Shape& x, const Shape& weight, Where where) {
  check(x.size() == 4, where, "expected an input of shape (N, C, H, W), got ", x);
  check(weight.size() == 4, where, "expected a weight of 4 dimensions, got ", weight);
  check(weight[2] >= 1 && weight[3] >= 1, where, "expected a kernel of at least (1, 1), got ",
        weight);
  check(std::max({x[2], x[3], weight[1], weight[2], weight[3]}) <= kMost, where,
        "expected sizes of at most ", kMost, ", got ", x, " and a weight of shape ", weight);
}

void check_bias(const Shape* bias, int64_t channels, Where where) {
  check(bias == nullptr || *bias == Shape{channels}, where, "expected a bias of shape (", channels,
        "), got ", bias == nullptr ? Shape{} : *bias);
}

}  // namespace

ConvGeometry plan_conv(const Shape& x, const Shape& weight, const Shape* bias, const ConvOptions& o,
                       Where where) {
  check_ranks(x, weight, where);
  check_options(o.stride, o.padding, o.dilation, o.groups, where);
  check(x[1] == weight[1] * o.groups, where, "expected an input of ", weight[1] * o.groups,
        " channels for a weight of shape ", weight, " and ", o.groups, " groups, got ", x);
  check(weight[0] % o.groups == 0, where, "expected output channels in ", o.groups,
        " equal groups, got a weight of shape ", weight);
  check_bias(bias, weight[0], where);
  const Size2d reach{o.dilation.h * (weight[2] - 1), o.dilation.w * (weight[3] - 1)};
  Padding p = o.padding;
  if (p.keep_size) {
    check(o.stride == Size2d(1), where, "expected stride 1 with Padding::same, got (", o.stride.h,
          ", ", o.stride.w, ")");
    p = Padding(reach.h / 2, reach.h - reach.h / 2, reach.w / 2, reach.w - reach.w / 2);
  }
  const Size2d padded{x[2] + p.top + p.bottom, x[3] + p.left + p.right};
  check(padded.h > reach.h && padded.w > reach.w, where, "expected a padded image of at least (",
        reach.h + 1, ", ", reach.w + 1, ") for a weight of shape ", weight, ", got (", padded.h,
        ", ", padded.w, ") from an input of shape ", x);
  ConvGeometry g;
  g.images = x[0];
  g.in_channels = x[1];
  g.out_channels = weight[0];
  g.in = {x[2], x[3]};
  g.out = {(padded.h - reach.h - 1) / o.stride.h + 1, (padded.w - reach.w - 1) / o.stride.w + 1};
  g.kernel = {weight[2], weight[3]};
  g.stride = o.stride;
  g.dilation = o.dilation;
  g.pad_top = p.top;
  g.pad_left = p.left;
  g.groups = o.groups;
  return g;
}

ConvGeometry plan_conv_transpose(const Shape& x, const Shape& weight, const Shape* bias,
                                 const ConvTransposeOptions& o, Where where) {
  check_ranks(x, weight, where);
  check_options(o.stride, o.padding, o.dilation, o.groups, where);
  check(!o.padding.keep_size, where, "expected explicit padding, got Padding::same");
  check(x[1] == weight[0], where, "expected an input of ", weight[0],
        " channels for a weight of shape ", weight, ", got ", x);
  check(x[1] % o.groups == 0, where, "expected input channels in ", o.groups,
        " equal groups, got an input of shape ", x);
  check_bias(bias, weight[1] * o.groups, where);
  const Size2d extra = o.output_padding;
  check(extra.h >= 0 && extra.w >= 0 && extra.h < std::max(o.stride.h, o.dilation.h) &&
            extra.w < std::max(o.stride.w, o.dilation.w),
        where, "expected output padding below stride (", o.stride.h, ", ", o.stride.w,
        ") or dilation (", o.dilation.h, ", ", o.dilation.w, "), got (", extra.h, ", ", extra.w,
        ")");
  const Padding& p = o.padding;
  ConvGeometry g;
  g.images = x[0];
  g.in_channels = weight[1] * o.groups;
  g.out_channels = x[1];
  g.in = {
      (x[2] - 1) * o.stride.h - p.top - p.bottom + o.dilation.h * (weight[2] - 1) + extra.h + 1,
      (x[3] - 1) * o.stride.w - p.left - p.right + o.dilation.w * (weight[3] - 1) + extra.w + 1};
  check(g.in.h >= 1 && g.in.w >= 1 && x[2] >= 1 && x[3] >= 1, where,
        "expected an output of at least (1, 1), got (", g.in.h, ", ", g.in.w,
        ") from an input of shape ", x, " and a weight of shape ", weight);
  g.out = {x[2], x[3]};
  g.kernel = {weight[2], weight[3]};
  g.stride = o.stride;
  g.dilation = o.dilation;
  g.pad_top = p.top;
  g.pad_left = p.left;
  g.groups = o.groups;
  return g;
}

AnyTensor channels_inner(const AnyTensor& x) {
  const Layout& layout = x.layout();
  if (layout.is_channels_last()) return x;
  // A slice of a channels-last image: pixels apart, their channels adjacent.
  if (layout.rank() == 4 && (layout.strides()[1] == 1 || layout.shape()[1] == 1)) return x;
  return materialize(x, MemoryFormat::channels_last);
}

}  // namespace gable::detail
