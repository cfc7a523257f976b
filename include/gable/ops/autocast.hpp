// SPDX-License-Identifier: Apache-2.0
// What amp::autocast means to operators: its per-thread setting, and products run by it.
#pragma once

#include <concepts>
#include <tuple>

#include "gable/core/type_list.hpp"
#include "gable/ops/op.hpp"

namespace gable::detail {

/// What float products compute in on this thread: bfloat16, float16, or float32 for themselves.
[[nodiscard]] DType& autocast_dtype() noexcept;

/// Sets autocast_dtype() for a scope. Casts of leaves live as long as the outermost scope, or the
/// innermost one with a cache of its own.
class AutocastScope {
 public:
  explicit AutocastScope(DType dtype, bool own_cache = false);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  DType before_;
  bool owner_;
};

/// f of operands cast to `to`, cast back. V is Tensor<float> or Variable<float>. Instantiated in
/// src/autocast.cpp for each f, so that users' code compiles its float operators only.
template <class V, class F, std::same_as<V>... Vs>
V run_lowered(DType to, const F& f, const Vs&... xs);

/// f(TypeTag<T>{}, xs...), xs of type T: two operands, and maybe a bias. Under autocast float ones
/// are cast to its type, and the result back.
template <class F, TensorLike... Xs>
auto autocast(const F& f, const Xs&... xs) {
  using T = element_of<std::tuple_element_t<0, std::tuple<Xs...>>>;
  using Result = decltype(f(TypeTag<T>{}, xs...));
  if constexpr (std::same_as<T, float>) {
    const DType to = autocast_dtype();
    if (to != DType::float32) return run_lowered<Result>(to, f, Result(xs)...);
  }
  return f(TypeTag<T>{}, xs...);
}
/// The same, but an undefined bias is none.
template <class F, TensorLike X, TensorLike W, TensorLike B>
auto autocast_biased(const F& f, const X& x, const W& weight, const B& bias) {
  using Result = decltype(autocast(f, x, weight, bias));
  if (!bias.defined()) return Result(autocast(f, x, weight));
  return autocast(f, x, weight, bias);
}

}  // namespace gable::detail
