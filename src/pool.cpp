// SPDX-License-Identifier: Apache-2.0
// Sizes and checks of pooling.
#include "gable/ops/pool.hpp"

#include <algorithm>

namespace gable::detail {

static int64_t pooled_size(int64_t in, int64_t before, int64_t after, int64_t reach, int64_t stride,
                           bool ceil_mode) {
  const int64_t span = in + before + after - reach - 1;
  int64_t out = (span + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (out - 1) * stride >= in + before) --out;  // would begin past the image
  return out;
}

PoolGeometry plan_pool(const Shape& x, Size2d kernel, Size2d stride, const Padding& p,
                       Size2d dilation, bool ceil_mode, Where where) {
  check(x.size() == 4, where, "expected an input of shape (N, C, H, W), got ", x);
  check(kernel.h >= 1 && kernel.w >= 1, where, "expected a kernel of at least (1, 1), got (",
        kernel.h, ", ", kernel.w, ")");
  if (stride == Size2d(0)) stride = kernel;
  check(stride.h >= 1 && stride.w >= 1, where, "expected strides of at least 1, got (", stride.h,
        ", ", stride.w, ")");
  check(dilation.h >= 1 && dilation.w >= 1, where, "expected dilations of at least 1, got (",
        dilation.h, ", ", dilation.w, ")");
  constexpr int64_t most = int64_t{1} << 30;  // keeps sums and products within 64 bits
  check(std::max({kernel.h, kernel.w, stride.h, stride.w, dilation.h, dilation.w, x[2], x[3]}) <=
            most,
        where, "expected sizes, kernels, strides and dilations of at most ", most, ", got ", x,
        ", kernel (", kernel.h, ", ", kernel.w, "), strides (", stride.h, ", ", stride.w,
        "), dilations (", dilation.h, ", ", dilation.w, ")");
  check(!p.keep_size, where, "expected explicit padding, got Padding::same");
  check(std::min({p.top, p.bottom, p.left, p.right}) >= 0 &&
            std::max(p.top, p.bottom) <= kernel.h / 2 && std::max(p.left, p.right) <= kernel.w / 2,
        where, "expected padding of at least 0 and at most half the kernel (", kernel.h, ", ",
        kernel.w, "), got top ", p.top, ", bottom ", p.bottom, ", left ", p.left, ", right ",
        p.right);
  const Size2d reach{dilation.h * (kernel.h - 1), dilation.w * (kernel.w - 1)};
  check(x[2] + p.top + p.bottom > reach.h && x[3] + p.left + p.right > reach.w && x[2] > 0 &&
            x[3] > 0,
        where, "expected a padded image of at least (", reach.h + 1, ", ", reach.w + 1, "), got (",
        x[2] + p.top + p.bottom, ", ", x[3] + p.left + p.right, ") from an input of shape ", x);
  PoolGeometry g;
  g.images = x[0];
  g.channels = x[1];
  g.in = {x[2], x[3]};
  g.out = {pooled_size(x[2], p.top, p.bottom, reach.h, stride.h, ceil_mode),
           pooled_size(x[3], p.left, p.right, reach.w, stride.w, ceil_mode)};
  g.kernel = kernel;
  g.stride = stride;
  g.dilation = dilation;
  g.padding = p;
  return g;
}

PoolGeometry plan_adaptive_pool(const Shape& x, Size2d out, Where where) {
  check(x.size() == 4, where, "expected an input of shape (N, C, H, W), got ", x);
  check(out.h >= 1 && out.w >= 1, where, "expected a result of at least (1, 1), got (", out.h, ", ",
        out.w, ")");
  check(x[2] > 0 && x[3] > 0, where, "expected an image of at least (1, 1), got an input of shape ",
        x);
  PoolGeometry g;
  g.images = x[0];
  g.channels = x[1];
  g.in = {x[2], x[3]};
  g.out = out;
  g.adaptive = true;
  return g;
}

}  // namespace gable::detail
