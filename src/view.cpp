// SPDX-License-Identifier: Apache-2.0
// Gradients of views: adding through a layout whose elements may overlap.
#include "gable/ops/view.hpp"

#include <algorithm>

namespace gable::detail {

namespace {
DType wide_type(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}
}  // namespace

void accumulate_overlapping(const AnyTensor& view, const AnyTensor& source) {
  const Layout& l = view.layout();
  if (!l.overlaps_itself()) {
    view.accumulate_(source);
    return;
  }
  int shortest = -1;  // the fewest parts: the window of unfold, not its positions
  for (int d = 0; d < l.rank(); ++d)
    if (l.shape()[d] > 1 && (shortest < 0 || l.shape()[d] < l.shape()[shortest])) shortest = d;
  for (int64_t i = 0; i < l.shape()[shortest]; ++i)
    accumulate_overlapping(view.with(l.select(shortest, i)),
                           source.with(source.layout().select(shortest, i)));
}

AnyTensor scatter_view(const AnyTensor& dy, const Layout& base, const Layout& view) {
  if (!view.overlaps_itself()) {
    const AnyTensor dx = view.numel() == base.numel()
                             ? AnyTensor::empty(base, dy.dtype(), dy.device())
                             : AnyTensor::zeros(base, dy.dtype(), dy.device());
    dx.with(view).copy_(dy);
    return dx;
  }
  const AnyTensor dx = AnyTensor::zeros(base, wide_type(dy.dtype()), dy.device());
  accumulate_overlapping(dx.with(view), dy);
  return dx.to(dy.dtype());
}

AnyTensor scatter_as_strided(const AnyTensor& dy, const Layout& base, const Layout& view) {
  const Extent a = base.extent();
  const Extent b = view.extent();
  if (base.numel() == 0 || view.numel() == 0)
    return AnyTensor::zeros(base.like(), dy.dtype(), dy.device());
  const int64_t low = std::min(a.low, b.low);
  const int64_t high = std::max(a.high, b.high);
  const AnyTensor storage =
      AnyTensor::zeros(Layout({high - low + 1}), wide_type(dy.dtype()), dy.device());
  accumulate_overlapping(storage.with(view.with_offset(view.offset() - low)), dy);
  const AnyTensor dx = AnyTensor::empty(base.like(), dy.dtype(), dy.device());
  dx.copy_(storage.with(base.with_offset(base.offset() - low)));
  return dx;
}

}  // namespace gable::detail
