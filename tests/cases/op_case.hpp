// SPDX-License-Identifier: Apache-2.0
// OpCase: one description of an operator call, which feeds the correctness tests (contiguous and
// strided inputs), the gradient check, CPU/CUDA parity, the benchmarks and the roofline.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gable/autograd/apply.hpp"
#include "gable/tensor/random.hpp"

namespace gable::cases {

/// A float input, drawn uniformly from [low, high) in double, then rounded to the dtype tested.
struct Input {
  Shape shape;
  double low = -2;
  double high = 2;
};

struct Tolerance {
  double absolute = 1e-5;
  double relative = 1e-5;
};

/// A call of an operator on float inputs. Index or mask operands are captured by `run`.
struct OpCase {
  std::string name;  ///< "softmax/last_dim"; unique
  std::vector<Input> inputs;

  /// Runs the operator on inputs of one float dtype. The result may have any dtype.
  std::function<AnyTensor(const std::vector<AnyTensor>&)> run;
  /// The same on Variables, for gradcheck; empty where there is no gradient.
  std::function<Variable<double>(const std::vector<Variable<double>>&)> run_grad;
  /// Gradients of the inputs (of dtype float32, float64 or bfloat16) for a gradient `dy` of the
  /// result, which is converted to its dtype; empty where there is no gradient.
  std::function<std::vector<AnyTensor>(const std::vector<AnyTensor>&, const Tensor<double>& dy)>
      backward;
  /// Independent result in double, from plain loops over contiguous inputs; not a gable operator.
  std::function<Tensor<double>(const std::vector<Tensor<double>>&)> reference;

  Tolerance float32{1e-5, 1e-5};
  Tolerance float64{1e-12, 1e-12};
  Tolerance float16{4e-3, 4e-3};
  Tolerance bfloat16{3e-2, 3e-2};
  bool small_floats = true;  ///< also tested in half and bfloat16
  bool gradient = true;      ///< gradcheck
  bool benchmark = false;    ///< large enough to be timed by bench_ops
  double gradient_step = 1e-6;

  [[nodiscard]] Tolerance tolerance(DType dtype) const {
    switch (dtype) {
      case DType::float64: return float64;
      case DType::float16: return float16;
      case DType::bfloat16: return bfloat16;
      default: return float32;
    }
  }
};

namespace detail {
template <class Run>
AnyTensor run_any(const Run& run, const std::vector<AnyTensor>& inputs) {
  return visit_dtype(inputs.at(0).dtype(), [&]<class T>(TypeTag<T>) -> AnyTensor {
    if constexpr (FloatElement<T>) {
      std::vector<Tensor<T>> typed;
      for (const AnyTensor& x : inputs) typed.push_back(x.as<T>());
      return run(typed).any();
    } else {
      gable::fail<TypeError>("op_case", "expected float inputs, got ", dtype_of<T>);
    }
  });
}

template <class Run>
std::vector<AnyTensor> backward_any(const Run& run, const std::vector<AnyTensor>& inputs,
                                    const Tensor<double>& dy) {
  return visit_dtype(inputs.at(0).dtype(), [&]<class T>(TypeTag<T>) -> std::vector<AnyTensor> {
    if constexpr (TypeList<float, double, bfloat16>::contains<T>) {
      std::vector<Variable<T>> leaves;
      for (const AnyTensor& x : inputs) leaves.emplace_back(x.as<T>(), true);
      const auto y = run(leaves);
      using Result = typename std::decay_t<decltype(y)>::value_type;
      y.backward(dy.to(y.device()).template to<Result>());
      std::vector<AnyTensor> out;
      for (const Variable<T>& x : leaves) out.push_back(x.grad().any());
      return out;
    } else {
      gable::fail<TypeError>("op_case", "expected float32, float64 or bfloat16, got ", dtype_of<T>);
    }
  });
}

}  // namespace detail

/// `run` is generic: [](const auto& in) { return softmax(in[0], -1); } where `in` is a vector of
/// Tensor<T> or Variable<double>. Returns the case, to be adjusted and added.
template <class Run>
OpCase differentiable(std::string name, std::vector<Input> inputs, Run run,
                      std::function<Tensor<double>(const std::vector<Tensor<double>>&)> reference) {
  OpCase c;
  c.name = std::move(name);
  c.inputs = std::move(inputs);
  c.run = [run](const std::vector<AnyTensor>& in) { return detail::run_any(run, in); };
  c.run_grad = [run](const std::vector<Variable<double>>& in) { return run(in); };
  c.backward = [run](const std::vector<AnyTensor>& in, const Tensor<double>& dy) {
    return detail::backward_any(run, in, dy);
  };
  c.reference = std::move(reference);
  return c;
}

/// The same for operators without a gradient.
template <class Run>
OpCase forward_only(std::string name, std::vector<Input> inputs, Run run,
                    std::function<Tensor<double>(const std::vector<Tensor<double>>&)> reference) {
  OpCase c;
  c.name = std::move(name);
  c.inputs = std::move(inputs);
  c.run = [run](const std::vector<AnyTensor>& in) { return detail::run_any(run, in); };
  c.reference = std::move(reference);
  c.gradient = false;
  return c;
}

/// Reference from a scalar function of the broadcast inputs, in row-major order.
[[nodiscard]] std::function<Tensor<double>(const std::vector<Tensor<double>>&)> pointwise(
    std::function<double(const std::vector<double>&)> f);

/// All cases, in registration order.
[[nodiscard]] std::vector<OpCase>& all();

/// One at namespace scope in each tests/cases/x.cpp:
///   const Register register_softmax([](auto& add) { add(differentiable(...)); });
class Register {
 public:
  using Add = std::function<void(OpCase)>;
  explicit Register(const std::function<void(const Add&)>& define) {
    define([](OpCase c) { all().push_back(std::move(c)); });
  }
};

/// The same values in another layout: 0 contiguous, 1 transposed storage, 2 every second element
/// of a larger buffer, 3 negative stride in the last dimension, 4 offset inside a larger buffer.
inline constexpr int kLayoutVariants = 5;
[[nodiscard]] AnyTensor in_layout(const AnyTensor& contiguous, int variant);

/// Inputs of a case, rounded to `dtype`; the same for every call.
[[nodiscard]] std::vector<AnyTensor> make_inputs(const OpCase& c, DType dtype);

}  // namespace gable::cases
