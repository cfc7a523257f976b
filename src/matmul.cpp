// SPDX-License-Identifier: Apache-2.0
// Shapes of matrix products.
#include "gable/ops/matmul.hpp"

namespace gable::detail {

MatmulPlan plan_matmul(const Layout& a, const Layout& b, Where where) {
  check(a.rank() >= 1 && b.rank() >= 1, where, "expected operands of rank 1 or more, got ",
        a.shape(), " and ", b.shape());
  const Layout left = a.rank() == 1 ? a.unsqueeze(0) : a;
  const Layout right = b.rank() == 1 ? b.unsqueeze(1) : b;
  check(left.size(-1) == right.size(-2), where, "expected equal inner sizes, got ", a.shape(),
        " and ", b.shape());
  const int batch = std::max(left.rank(), right.rank()) - 2;
  Shape shape_a;
  Shape shape_b;
  Shape shape;
  for (int d = 0; d < batch; ++d) {
    const int from_a = d - (batch - (left.rank() - 2));
    const int from_b = d - (batch - (right.rank() - 2));
    const int64_t size_a = from_a < 0 ? 1 : left.shape()[from_a];
    const int64_t size_b = from_b < 0 ? 1 : right.shape()[from_b];
    check(size_a == size_b || size_a == 1 || size_b == 1, where,
          "expected batches that broadcast, got ", a.shape(), " and ", b.shape());
    const int64_t size = size_a == 1 ? size_b : size_a;
    shape_a.push_back(size);
    shape_b.push_back(size);
    shape.push_back(size);
  }
  shape_a.push_back(left.size(-2));
  shape_a.push_back(left.size(-1));
  shape_b.push_back(right.size(-2));
  shape_b.push_back(right.size(-1));
  if (a.rank() > 1) shape.push_back(left.size(-2));
  if (b.rank() > 1) shape.push_back(right.size(-1));
  return {left.expand(shape_a), right.expand(shape_b), shape};
}

Layout matmul_full_layout(const Layout& result, int rank_a, int rank_b) {
  Layout full = result;
  if (rank_b == 1) full = full.unsqueeze(full.rank());
  if (rank_a == 1) full = full.unsqueeze(full.rank() - 1);
  return full;
}

AnyTensor as_rows(const AnyTensor& x) {
  const Layout& layout = x.layout();
  if (layout.rank() == 2) return x;
  if (layout.rank() == 1) return x.with(layout.unsqueeze(0));
  const int64_t columns = layout.size(-1);
  int64_t count = 1;
  for (int d = 0; d + 1 < layout.rank(); ++d) count *= layout.shape()[d];
  const Shape rows = {count, columns};
  if (auto viewed = layout.view(rows)) return x.with(*viewed);
  const AnyTensor dense = materialize(x, MemoryFormat::row_major);
  return dense.with(*dense.layout().view(rows));
}

void check_linear(const AnyTensor& x, const AnyTensor& weight, const AnyTensor* bias) {
  constexpr const char* name = "linear";
  check(weight.layout().rank() == 2, name, "expected a weight of shape (out, in), got ",
        weight.shape());
  check(x.layout().rank() >= 1 && x.layout().size(-1) == weight.shape()[1], name,
        "expected an input of shape (..., ", weight.shape()[1], ") for a weight of shape ",
        weight.shape(), ", got ", x.shape());
  check_same_device(name, x, weight);
  if (bias == nullptr) return;
  check(bias->shape() == Shape{weight.shape()[0]}, name, "expected a bias of shape (",
        weight.shape()[0], ") for a weight of shape ", weight.shape(), ", got ", bias->shape());
  check_same_device(name, x, *bias);
}

}  // namespace gable::detail
