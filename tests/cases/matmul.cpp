// SPDX-License-Identifier: Apache-2.0
// Matrix products.
#include "gable/ops/matmul.hpp"

#include "op_case.hpp"

namespace gable::cases {
namespace {

// Plain loops over the last two dimensions; batches broadcast by index arithmetic.
Tensor<double> naive(const Tensor<double>& a, const Tensor<double>& b) {
  const Tensor<double> left = a.rank() == 1 ? a.unsqueeze(0) : a;
  const Tensor<double> right = b.rank() == 1 ? b.unsqueeze(1) : b;
  Shape batch_a = left.shape();
  Shape batch_b = right.shape();
  const int64_t m = left.size(-2);
  const int64_t k = left.size(-1);
  const int64_t n = right.size(-1);
  for (Shape* s : {&batch_a, &batch_b}) {
    s->erase(s->size() - 1);
    s->erase(s->size() - 1);
  }
  const Shape batch = broadcast_shapes(batch_a, batch_b, "naive");
  Shape full_a = batch;
  Shape full_b = batch;
  Shape full = batch;
  for (const int64_t d : {m, k}) full_a.push_back(d);
  for (const int64_t d : {k, n}) full_b.push_back(d);
  for (const int64_t d : {m, n}) full.push_back(d);
  const std::vector<double> x = left.expand(full_a).to_vector();
  const std::vector<double> y = right.expand(full_b).to_vector();
  Tensor<double> out = zeros<double>(full);
  for (int64_t s = 0; s < numel(batch); ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t p = 0; p < k; ++p)
          out.data()[(s * m + i) * n + j] += x[static_cast<size_t>((s * m + i) * k + p)] *
                                             y[static_cast<size_t>((s * k + p) * n + j)];
  Shape shape = batch;
  if (a.rank() > 1) shape.push_back(m);
  if (b.rank() > 1) shape.push_back(n);
  return out.view(shape);
}

OpCase matmul_case(const std::string& name, const Shape& a, const Shape& b) {
  OpCase c = differentiable(
      "matmul/" + name, {{a}, {b}}, [](const auto& in) { return matmul(in[0], in[1]); },
      [](const auto& in) { return naive(in[0], in[1]); });
  // sums of k products of values below 2
  c.float32 = {1e-4, 1e-5};
  c.float16 = {8e-3, 4e-3};
  c.bfloat16 = {6e-2, 2e-2};
  return c;
}

OpCase linear_case(const std::string& name, const Shape& x, int64_t out, bool bias) {
  const int64_t in_features = x.back();
  std::vector<Input> inputs = {{x}, {{out, in_features}}};
  if (bias) inputs.push_back({{out}});
  auto reference = [](const std::vector<Tensor<double>>& in) {
    Tensor<double> y = naive(in[0], in[1].t());
    if (in.size() == 3) {
      const int64_t n = in[2].numel();
      for (int64_t i = 0; i < y.numel(); ++i) y.data()[i] += in[2].data()[i % n];
    }
    return y;
  };
  OpCase c = differentiable(
      "linear/" + name, inputs,
      [](const auto& in) {
        return in.size() == 3 ? linear(in[0], in[1], in[2]) : linear(in[0], in[1]);
      },
      reference);
  c.float32 = {1e-4, 1e-5};
  c.float16 = {8e-3, 4e-3};
  c.bfloat16 = {6e-2, 2e-2};
  return c;
}

const Register register_matmul([](const Register::Add& add) {
  add(matmul_case("vector_vector", {7}, {7}));
  add(matmul_case("matrix_vector", {5, 7}, {7}));
  add(matmul_case("vector_matrix", {7}, {7, 5}));
  add(matmul_case("one_by_one", {1, 1}, {1, 1}));
  add(matmul_case("row_column", {1, 9}, {9, 1}));
  add(matmul_case("outer", {6, 1}, {1, 5}));
  add(matmul_case("odd", {13, 17}, {17, 19}));
  add(matmul_case("skinny", {67, 5}, {5, 3}));
  add(matmul_case("batch", {3, 4, 5}, {3, 5, 2}));
  add(matmul_case("batch_broadcast_left", {4, 5}, {3, 5, 2}));
  add(matmul_case("batch_broadcast_right", {2, 3, 4, 5}, {5, 6}));
  add(matmul_case("batch_broadcast_both", {2, 1, 4, 5}, {3, 5, 2}));
  add(matmul_case("batch_vector", {2, 3, 4}, {4}));
  add(matmul_case("vector_batch", {4}, {2, 4, 3}));
  add(matmul_case("inner_empty", {3, 0}, {0, 4}));
  add(matmul_case("rows_empty", {0, 3}, {3, 4}));
  // Several blocks of the kernel in each direction; too long for central differences.
  OpCase large = matmul_case("blocks", {131, 1100}, {1100, 301});
  large.gradient = false;
  large.float32 = {2e-3, 1e-4};
  large.float16 = {0.15, 4e-3};
  large.bfloat16 = {1.0, 2e-2};
  large.benchmark = true;
  add(large);
  add(linear_case("matrix", {6, 5}, 7, true));
  add(linear_case("vector", {5}, 3, true));
  add(linear_case("rank4", {2, 3, 1, 4}, 5, true));
  add(linear_case("no_bias", {4, 3}, 2, false));
  add(linear_case("one_row", {1, 16}, 8, true));
});

}  // namespace
}  // namespace gable::cases
