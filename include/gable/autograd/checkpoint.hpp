// SPDX-License-Identifier: Apache-2.0
// Activation checkpointing: what a function computes inside is computed again in backward and not
// kept until then.
#pragma once

#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "gable/autograd/apply.hpp"
#include "gable/ops/autocast.hpp"
#include "gable/tensor/random.hpp"

namespace gable {

namespace detail {

/// Sets the default generator back to `state` for a scope.
class ReplayGenerator {
 public:
  explicit ReplayGenerator(Generator::State state) : before_(default_generator().state()) {
    default_generator().set_state(state);
  }
  ~ReplayGenerator() { default_generator().set_state(before_); }
  ReplayGenerator(const ReplayGenerator&) = delete;
  ReplayGenerator& operator=(const ReplayGenerator&) = delete;

 private:
  Generator::State before_;
};

template <class F, Element Out, Element... Ts>
class CheckpointNode final : public Node {
 public:
  CheckpointNode(F f, Generator::State state, const Tensor<Out>& output, const Tensor<Ts>&... xs)
      : Node("checkpoint", output.shape(), dtype_of<Out>, output.device()),
        f_(std::move(f)),
        state_(state),
        autocast_(autocast_dtype()) {
    std::apply([&](auto&... saved) { (saved.save(xs), ...); }, saved_);
  }

  std::vector<AnyTensor> backward(const AnyTensor& dy) override {
    check<Error>(f_.has_value(), name,
                 "expected saved tensors, got a graph that backward has already consumed; pass "
                 "retain_graph to run it twice");
    return run(dy, std::index_sequence_for<Ts...>{});
  }
  void release() override {
    f_.reset();
    std::apply([](auto&... saved) { (saved.reset(), ...); }, saved_);
  }

 private:
  template <size_t... I>
  std::vector<AnyTensor> run(const AnyTensor& dy, std::index_sequence<I...>) {
    const std::tuple<Variable<Ts>...> leaves{
        Variable<Ts>(std::get<I>(saved_).get(name), inputs[I] != nullptr)...};
    Variable<Out> y;
    {
      const ReplayGenerator replay(state_);
      // Of its own cache: the leaves here live for this run only.
      const AutocastScope autocast(autocast_, true);
      const EnableGrad enable_grad;
      y = std::apply(*f_, leaves);
    }
    check(y.shape() == shape, name, "expected the same result when run again, shape ", shape,
          ", got ", y.shape());
    // Parameters that f captured collect their gradients here; inputs' are handed on.
    if (y.requires_grad()) y.backward(dy.as<Out>());
    return {(inputs[I] != nullptr ? std::get<I>(leaves).grad().any() : AnyTensor())...};
  }

  std::optional<F> f_;
  Generator::State state_;
  DType autocast_;
  std::tuple<Saved<Ts>...> saved_;
};

}  // namespace detail

/// f(inputs...) without keeping what it computes inside: backward runs f again, with the default
/// generator and autocast as they were, so that dropout repeats. `f` takes a const Variable<T>& for
/// each input and returns one Variable of floating-point type; it must compute the same twice, and
/// is copied. Gradients reach the inputs and every leaf that f captured. Costs one more forward;
/// saves all memory between the inputs and the result.
///
///   y = checkpoint([&](const Variable<float>& h) { return block(h); }, x);
template <class F, TensorLike... Xs>
auto checkpoint(F f, const Xs&... inputs) {
  (check(inputs.defined(), "checkpoint", "expected defined tensors, got an undefined one"), ...);
  const Generator::State state = default_generator().state();
  using Result = std::decay_t<decltype(f(Variable<element_of<Xs>>(detail::value_of(inputs))...))>;
  using Out = typename Result::value_type;
  Tensor<Out> output;
  {
    const NoGrad no_grad;
    output = f(Variable<element_of<Xs>>(detail::value_of(inputs))...).value();
  }
  if (!grad_enabled()) return Variable<Out>(std::move(output));
  auto node = std::make_shared<detail::CheckpointNode<F, Out, element_of<Xs>...>>(
      std::move(f), state, output, detail::value_of(inputs)...);
  node->inputs = {detail::node_of(inputs)...};
  return Variable<Out>(std::move(output), std::move(node));
}

}  // namespace gable
