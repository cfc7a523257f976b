// SPDX-License-Identifier: Apache-2.0
// Registry and input makers of the shared op cases.
#include "op_case.hpp"

namespace gable::cases {

std::vector<OpCase>& all() {
  static std::vector<OpCase> cases;
  return cases;
}

std::function<Tensor<double>(const std::vector<Tensor<double>>&)> pointwise(
    std::function<double(const std::vector<double>&)> f) {
  return [f = std::move(f)](const std::vector<Tensor<double>>& in) {
    Shape shape = in.at(0).shape();
    for (const auto& x : in) shape = broadcast_shapes(shape, x.shape(), "pointwise");
    std::vector<std::vector<double>> columns;
    for (const auto& x : in) columns.push_back(x.expand(shape).to_vector());
    Tensor<double> out(shape);
    std::vector<double> arguments(in.size());
    for (int64_t i = 0; i < out.numel(); ++i) {
      for (size_t k = 0; k < in.size(); ++k) arguments[k] = columns[k][static_cast<size_t>(i)];
      out.data()[i] = f(arguments);
    }
    return out;
  };
}

AnyTensor in_layout(const AnyTensor& x, int variant) {
  const Shape& shape = x.shape();
  const int rank = shape.size();
  if (variant == 0 || rank == 0) return x;
  Layout inner;  // layout of the values inside a larger or permuted buffer
  AnyTensor buffer;
  Dims order;
  for (int d = 0; d < rank; ++d) order.push_back(d);
  switch (variant) {
    case 1: {  // dimensions reversed in memory
      Dims reversed;
      Shape stored;
      for (int d = rank - 1; d >= 0; --d) {
        reversed.push_back(d);
        stored.push_back(shape[d]);
      }
      buffer = AnyTensor::zeros(Layout(stored), x.dtype(), x.device());
      inner = buffer.layout().permute(reversed);
      break;
    }
    case 2: {
      Shape stored = shape;
      for (int64_t& s : stored) s = 2 * s + 1;
      buffer = AnyTensor::zeros(Layout(stored), x.dtype(), x.device());
      inner = buffer.layout();
      for (int d = 0; d < rank; ++d) inner = inner.slice(d, 1, {}, 2).narrow(d, 0, shape[d]);
      break;
    }
    case 3:
      buffer = AnyTensor::zeros(Layout(shape), x.dtype(), x.device());
      inner = buffer.layout().flip({rank - 1});
      break;
    default: {
      Shape stored = shape;
      for (int64_t& s : stored) s += 3;
      buffer = AnyTensor::zeros(Layout(stored), x.dtype(), x.device());
      inner = buffer.layout();
      for (int d = 0; d < rank; ++d) inner = inner.narrow(d, 2, shape[d]);
    }
  }
  AnyTensor view = buffer.with(inner);
  view.copy_(x);
  return view;
}

std::vector<AnyTensor> make_inputs(const OpCase& c, DType dtype) {
  uint64_t seed = 1469598103934665603ULL;  // FNV-1a of the name: every case draws its own
  for (const char ch : c.name) seed = (seed ^ static_cast<unsigned char>(ch)) * 1099511628211ULL;
  Generator generator(seed);
  std::vector<AnyTensor> out;
  for (const Input& i : c.inputs)
    out.push_back(rand<double>(i.shape, i.low, i.high, {}, generator).any().to(dtype));
  return out;
}

}  // namespace gable::cases
