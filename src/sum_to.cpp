// SPDX-License-Identifier: Apache-2.0
// sum_to: the adjoint of broadcasting.
#include "gable/ops/sum_to.hpp"

#include <vector>

#include "gable/tensor/strided_loop.hpp"

namespace gable {

template <FloatElement T>
Tensor<T> sum_to(const Tensor<T>& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Tensor<double> sum = zeros<double>(shape);
  const Layout target = sum.layout().expand(x.shape(), "sum_to");
  const StridedLoop<2> loop({&x.layout(), &target});
  const auto [from, to] = loop.row_strides();
  loop.visit(0, x.numel(), [&](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      sum.data()[at[1] + i * to] += convert<double>(x.data()[at[0] + i * from]);
  });
  return sum.to<T>();
}

template Tensor<float> sum_to<float>(const Tensor<float>&, const Shape&);
template Tensor<double> sum_to<double>(const Tensor<double>&, const Shape&);
template Tensor<half> sum_to<half>(const Tensor<half>&, const Shape&);
template Tensor<bfloat16> sum_to<bfloat16>(const Tensor<bfloat16>&, const Shape&);

}  // namespace gable
