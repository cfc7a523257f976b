// SPDX-License-Identifier: Apache-2.0
// Sequential: modules one after the other; Identity and Lambda to put into it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gable/nn/module.hpp"

namespace gable::nn {

/// Runs its modules in order; they are named "0", "1", ... unless given names.
///   nn::Sequential<float> net;
///   net.add<nn::Linear>(784, 128);
///   net.add<nn::ReLU>();
///   net.add<nn::Linear>(128, 10);
template <FloatElement T>
class Sequential : public Module<T> {
 public:
  Sequential() = default;
  explicit Sequential(const std::vector<std::shared_ptr<Module<T>>>& modules) {
    for (const auto& m : modules) add(m);
  }

  /// Constructs a module of this element type at the end and returns it.
  template <template <FloatElement> class M, class... Args>
  M<T>& add(Args&&... args) {
    return *add(std::make_shared<M<T>>(std::forward<Args>(args)...));
  }
  /// The same for any module class.
  template <std::derived_from<AnyModule> M, class... Args>
  M& add(Args&&... args) {
    return *add(std::make_shared<M>(std::forward<Args>(args)...));
  }
  template <std::derived_from<Module<T>> M>
  std::shared_ptr<M> add(std::shared_ptr<M> module) {
    return add(std::to_string(modules_.size()), std::move(module));
  }
  template <std::derived_from<Module<T>> M>
  std::shared_ptr<M> add(std::string name, std::shared_ptr<M> module) {
    this->register_module(std::move(name), module);
    modules_.push_back(module);
    return module;
  }

  Variable<T> forward(const Variable<T>& x) override {
    Variable<T> y = x;
    for (const auto& m : modules_) y = m->forward(y);
    return y;
  }
  [[nodiscard]] size_t size() const { return modules_.size(); }
  /// Throws IndexError.
  [[nodiscard]] Module<T>& operator[](size_t index) const {
    check<IndexError>(index < modules_.size(), "sequential", "expected an index below ",
                      modules_.size(), ", got ", index);
    return *modules_[index];
  }
  [[nodiscard]] std::string describe() const override { return "Sequential"; }

 private:
  std::vector<std::shared_ptr<Module<T>>> modules_;
};

/// Returns its input.
template <FloatElement T>
class Identity : public Module<T> {
 public:
  Variable<T> forward(const Variable<T>& x) override { return x; }
  [[nodiscard]] std::string describe() const override { return "Identity"; }
};

/// A function as a module:
///   net.add<nn::Lambda>([](const Variable<float>& x) { return tanh(x) * 2; });
template <FloatElement T>
class Lambda : public Module<T> {
 public:
  using Function = std::function<Variable<T>(const Variable<T>&)>;
  explicit Lambda(Function function) : function_(std::move(function)) {}
  Variable<T> forward(const Variable<T>& x) override { return function_(x); }
  [[nodiscard]] std::string describe() const override { return "Lambda"; }

 private:
  Function function_;
};
GABLE_MODULE(extern, Sequential)
GABLE_MODULE(extern, Identity)
GABLE_MODULE(extern, Lambda)

}  // namespace gable::nn
