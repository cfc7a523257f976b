// SPDX-License-Identifier: Apache-2.0
// Shapes of reductions, and sum_to.
#include "gable/ops/reduce.hpp"

#include <algorithm>
#include <cstdlib>

#include "gable/ops/sum_to.hpp"

namespace gable {
namespace detail {

Layout reduced_layout(const Layout& x, const Dims& dims) {
  Shape shape = x.shape();
  Dims order;  // dimensions by decreasing stride
  for (int d = 0; d < x.rank(); ++d) {
    if (dims.contains(d)) shape[d] = 1;
    order.push_back(d);
  }
  if (x.is_contiguous() || x.overlaps_itself()) return Layout(shape);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(x.strides()[static_cast<int>(a)]) > std::abs(x.strides()[static_cast<int>(b)]);
  });
  Strides strides = Dims::filled(x.rank(), 0);
  int64_t step = 1;
  for (int i = x.rank() - 1; i >= 0; --i) {
    const auto d = static_cast<int>(order[i]);
    strides[d] = step;
    step *= std::max<int64_t>(shape[d], 1);
  }
  return Layout(shape, strides, 0, "reduce");
}

Layout drop_dims(const Layout& x, const Dims& dims) {
  Layout out = x;
  for (int d = x.rank() - 1; d >= 0; --d)
    if (dims.contains(d)) out = out.squeeze(d);
  return out;
}

Layout keep_dims(const Layout& x, const Dims& dims) {
  Layout out = x;
  const int rank = x.rank() + dims.size();
  for (int d = 0; d < rank; ++d)
    if (dims.contains(d)) out = out.unsqueeze(d);
  return out;
}

int64_t reduced_count(const Shape& x, const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= x[static_cast<int>(d)];
  return count;
}

void check_not_empty(Where where, const Shape& x, const Dims& dims) {
  check(reduced_count(x, dims) > 0, where, "expected at least one value to reduce, got shape ", x,
        " over dimensions ", dims);
}

AnyTensor reduce_target(Where where, const AnyTensor& out, const AnyTensor& x, const Dims& dims,
                        bool keepdim) {
  const Layout kept = reduced_layout(x.layout(), dims);
  const Shape want = keepdim ? kept.shape() : drop_dims(kept, dims).shape();
  check(out.shape() == want, where, "expected an output of shape ", want, ", got ", out.shape());
  check_same_device(where, x, out);
  return keepdim ? out : out.with(keep_dims(out.layout(), dims));
}

}  // namespace detail

template <FloatElement T>
Tensor<T> sum_to(const Tensor<T>& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Tensor<T> sum(shape, x.device());
  (void)sum.layout().expand(x.shape(), "sum_to");  // checks that the shapes fit
  Layout target = sum.layout();
  while (target.rank() < x.rank()) target = target.unsqueeze(0);
  detail::reduce_into(Sum{}, sum.with(target), x);
  return sum;
}

template Tensor<float> sum_to<float>(const Tensor<float>&, const Shape&);
template Tensor<double> sum_to<double>(const Tensor<double>&, const Shape&);
template Tensor<half> sum_to<half>(const Tensor<half>&, const Shape&);
template Tensor<bfloat16> sum_to<bfloat16>(const Tensor<bfloat16>&, const Shape&);

}  // namespace gable
