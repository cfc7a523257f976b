// SPDX-License-Identifier: Apache-2.0
// The protocol of a differentiable operator: a struct with forward() and backward().
//
//   template <FloatElement T>
//   struct DoubleOp : OpBase {
//     static constexpr const char* name = "double";
//     Tensor<T> forward(const Tensor<T>& x) { return x * 2; }
//     Grads<1> backward(const Tensor<T>& dy) { return {dy * 2}; }
//   };
//   Variable<float> y = apply(DoubleOp<float>{}, x);
//
// Users' own operators follow the same protocol.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "gable/tensor/tensor.hpp"

namespace gable {

/// Gradients of N inputs; an undefined AnyTensor means none. Their dtype may differ from the
/// input's (float gradients of bfloat16 weights).
template <size_t N>
using Grads = std::array<AnyTensor, N>;

/// Base of operators; tells forward() and backward() what will be asked of them.
class OpBase {
 public:
  /// True if backward() may follow, so that forward() has to save what it reads.
  [[nodiscard]] bool recording() const { return needs_ != 0; }
  /// True if input i wants a gradient.
  [[nodiscard]] bool needs(size_t input) const { return ((needs_ >> input) & 1U) != 0; }
  /// Set by the engine before forward(); one bit an input, the last for all further ones.
  void set_needs(uint64_t mask) { needs_ = mask; }

 private:
  uint64_t needs_ = 0;
};

/// A tensor kept for backward(), with the version that it had: get() throws Error, naming the
/// operator, if it was written in place since.
template <Element T>
class Saved {
 public:
  Saved() = default;
  void save(const Tensor<T>& tensor) {
    tensor_ = tensor;
    version_ = tensor.any().storage().version();
  }
  [[nodiscard]] bool defined() const { return tensor_.defined(); }
  [[nodiscard]] const Tensor<T>& get(Where op) const {
    const uint64_t now = tensor_.defined() ? tensor_.any().storage().version() : 0;
    check<Error>(now == version_, op, "expected the tensor of shape ", tensor_.shape(),
                 " saved for backward at version ", version_, ", got version ", now,
                 ": it was modified in place");
    return tensor_;
  }
  void reset() { tensor_ = Tensor<T>(); }

 private:
  Tensor<T> tensor_;
  uint64_t version_ = 0;
};

namespace detail {
template <class X>
struct IsTensor : std::false_type {};
template <class T>
struct IsTensor<Tensor<T>> : std::true_type {};
}  // namespace detail

/// Tensor<T>, or a Variable<T> or Parameter<T> of the autograd layer.
template <class X>
concept TensorLike = detail::IsTensor<X>::value || requires {
  typename X::is_variable;
};
template <TensorLike X>
using element_of = typename X::value_type;
/// Tensor-like of a floating-point type.
template <class X>
concept FloatTensorLike = TensorLike<X> && FloatElement<typename X::value_type>;

/// Runs an operator on plain tensors. The autograd layer overloads this for Variables, so a
/// public function written with apply() works for both.
template <class Op, Element... Ts>
auto apply(Op op, const Tensor<Ts>&... inputs) {
  (check(inputs.defined(), op.name, "expected defined tensors, got an undefined one"), ...);
  return op.forward(inputs...);
}

/// Runs an operator of a list of tensors.
template <class Op, Element T>
Tensor<T> apply_list(Op op, std::span<const Tensor<T>> inputs) {
  for (const Tensor<T>& x : inputs)
    check(x.defined(), op.name, "expected defined tensors, got an undefined one");
  return op.forward(inputs);
}

namespace detail {
/// Throws DeviceError unless all tensors are on one device; returns it.
template <class First, class... Rest>
Device common_device(Where where, const First& first, const Rest&... rest) {
  (check_same_device(where, first, rest), ...);
  return first.device();
}
}  // namespace detail

}  // namespace gable
