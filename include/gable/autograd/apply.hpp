// SPDX-License-Identifier: Apache-2.0
// apply() on Variables: runs an operator and records a node that owns it.
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "gable/autograd/variable.hpp"
#include "gable/ops/op.hpp"

namespace gable {

namespace detail {

template <class X>
concept VariableType = requires {
  typename X::is_variable;
};

template <class T>
const Tensor<T>& value_of(const Tensor<T>& x) {
  return x;
}
template <VariableType X>
const auto& value_of(const X& x) {
  return x.value();
}
template <class T>
NodePtr node_of(const Tensor<T>&) {
  return nullptr;
}
template <VariableType X>
NodePtr node_of(const X& x) {
  return x.node();
}

/// The element type of an operator's dy: its output's, unless it names another as Gradient.
template <class Op, class T>
struct GradientOf {
  using type = T;
};
template <class Op, class T>
requires requires { typename Op::Gradient; }
struct GradientOf<Op, T> {
  using type = typename Op::Gradient;
};

/// Owns the operator, and with it what the operator saved.
template <class Op, Element T>
class OpNode final : public Node {
  using Gradient = typename GradientOf<Op, T>::type;

 public:
  OpNode(Op op, const Tensor<T>& output, std::vector<NodePtr> nodes)
      : Node(op.name, output.shape(), dtype_of<Gradient>, output.device()),
        op_(std::make_unique<Op>(std::move(op))) {
    inputs = std::move(nodes);
  }
  std::vector<AnyTensor> backward(const AnyTensor& dy) override {
    check<Error>(op_ != nullptr, name,
                 "expected saved tensors, got a graph that backward has already consumed; pass "
                 "retain_graph to run it twice");
    auto gradients = op_->backward(dy.as<Gradient>());
    return {gradients.begin(), gradients.end()};
  }
  void release() override { op_.reset(); }

 private:
  std::unique_ptr<Op> op_;
};

template <class Op, Element T>
Variable<T> record(Op&& op, Tensor<T> output, std::vector<NodePtr> nodes) {
  auto node =
      std::make_shared<OpNode<std::decay_t<Op>, T>>(std::move(op), output, std::move(nodes));
  return Variable<T>(std::move(output), std::move(node));
}

inline uint64_t needs_mask(const std::vector<NodePtr>& nodes) {
  uint64_t mask = 0;
  if (!grad_enabled()) return mask;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i]) mask |= uint64_t{1} << std::min<size_t>(i, 63);
  return mask;
}

// Wraps the operator's result: a tensor, or a pair whose first part is differentiable.
template <class Op, Element T>
Variable<T> wrap(Op&& op, Tensor<T> output, std::vector<NodePtr> nodes, bool recording) {
  if (!recording) return Variable<T>(std::move(output));
  return record(std::forward<Op>(op), std::move(output), std::move(nodes));
}
template <class Op, Element T, class Second>
std::pair<Variable<T>, Second> wrap(Op&& op, std::pair<Tensor<T>, Second> output,
                                    std::vector<NodePtr> nodes, bool recording) {
  return {wrap(std::forward<Op>(op), std::move(output.first), std::move(nodes), recording),
          std::move(output.second)};
}

}  // namespace detail

/// Runs `op` on Variables (plain Tensors among them are constants) and records it if a gradient
/// may be asked for. A pair result is differentiable in its first part.
template <class Op, TensorLike... Xs>
requires(detail::VariableType<Xs> || ...) auto apply(Op op, const Xs&... inputs) {
  (check(inputs.defined(), op.name, "expected defined tensors, got an undefined one"), ...);
  std::vector<NodePtr> nodes{detail::node_of(inputs)...};
  op.set_needs(detail::needs_mask(nodes));
  auto output = op.forward(detail::value_of(inputs)...);
  const bool recording = op.recording();
  return detail::wrap(std::move(op), std::move(output), std::move(nodes), recording);
}

/// The same for operators of a list of tensors (cat, stack): forward(std::span<const Tensor<T>>),
/// backward gives one gradient a tensor.
template <class Op, Element T>
Variable<T> apply_list(Op op, std::span<const Variable<T>> inputs) {
  std::vector<NodePtr> nodes;
  std::vector<Tensor<T>> values;
  for (const Variable<T>& x : inputs) {
    check(x.defined(), op.name, "expected defined tensors, got an undefined one");
    nodes.push_back(x.node());
    values.push_back(x.value());
  }
  op.set_needs(detail::needs_mask(nodes));
  Tensor<T> output = op.forward(std::span<const Tensor<T>>(values));
  const bool recording = op.recording();
  return detail::wrap(std::move(op), std::move(output), std::move(nodes), recording);
}

}  // namespace gable
