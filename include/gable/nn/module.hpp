// SPDX-License-Identifier: Apache-2.0
// Module<T>: a function of Variables with named parameters, buffers and submodules.
//
//   struct Net : nn::Module<float> {
//     nn::Linear<float> fc1{784, 128};
//     nn::Linear<float> fc2{128, 10};
//     Net() {
//       register_module("fc1", fc1);
//       register_module("fc2", fc2);
//     }
//     Variable<float> forward(const Variable<float>& x) override { return fc2(relu(fc1(x))); }
//   };
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "gable/autograd/apply.hpp"
#include "gable/tensor/state_dict.hpp"

namespace gable::nn {

struct LoadOptions {
  /// Throw for missing and unexpected names. Shapes and kinds must fit either way.
  bool strict = true;
};

/// Names that load_state_dict() found without a counterpart; both empty after a strict load.
struct LoadResult {
  std::vector<std::string> missing;     ///< of the module, absent from the dict
  std::vector<std::string> unexpected;  ///< of the dict, absent from the module
};

/// What modules of every element type share: the registry and what is built on it. The registry
/// refers to members, so modules can be neither copied nor moved; functions return them as
/// prvalues or in a shared_ptr. Another copy of a model is a second one of the same construction
/// after load_state_dict(first.state_dict()).
class AnyModule {
 public:
  AnyModule() = default;
  AnyModule(const AnyModule&) = delete;
  AnyModule& operator=(const AnyModule&) = delete;
  virtual ~AnyModule() = default;

  // --- walking; names are dotted paths in registration order ("layer1.0.conv1.weight")

  /// Direct submodules.
  [[nodiscard]] std::vector<std::pair<std::string, AnyModule*>> children() const;
  /// This module (name "") and all below it, parents first.
  [[nodiscard]] std::vector<std::pair<std::string, AnyModule*>> named_modules();
  /// Each parameter once, under its first name, also where modules share it.
  [[nodiscard]] std::vector<std::pair<std::string, AnyParameter>> named_parameters() const;
  [[nodiscard]] std::vector<AnyParameter> parameters() const;
  /// Tensors that are saved but not trained, such as running statistics.
  [[nodiscard]] std::vector<std::pair<std::string, AnyTensor>> named_buffers() const;
  /// Elements in all parameters; shared ones count once.
  [[nodiscard]] int64_t num_parameters() const;
  /// Calls f on every module below this one, then on this one. dynamic_cast tells the layers:
  ///   model.apply([](nn::AnyModule& m) {
  ///     if (auto* d = dynamic_cast<nn::Dropout<float>*>(&m)) d->probability = 0.1;
  ///   });
  void apply(const std::function<void(AnyModule&)>& f);

  // --- saving

  /// Handles (not copies) of masters and buffers, shared ones under each of their names. The
  /// entries of a module come before those of its submodules, as in PyTorch.
  [[nodiscard]] StateDict state_dict() const;
  /// Copies values in, converting between float types. Throws one Error that lists every missing
  /// and unexpected name (if strict), shape and kind of dtype that does not fit; nothing is
  /// written then.
  LoadResult load_state_dict(const StateDict& dict, LoadOptions options = {});

  // --- training

  /// Sets the mode of this module and all below it; batch norm and dropout depend on it.
  void train(bool on = true);
  void eval() { train(false); }
  /// True from construction until eval().
  [[nodiscard]] bool training() const { return training_; }
  /// Drops all gradients, or with `keep_memory` fills them with zeros.
  void zero_grad(bool keep_memory = false) const;
  /// Moves parameters and buffers. Gradients are dropped, and handles that an optimizer took
  /// before stay on the old device: build optimizers afterwards.
  void to(Device device);

  /// One line about this module without its submodules: "Linear(784, 128)".
  [[nodiscard]] virtual std::string describe() const { return "Module"; }

 protected:
  /// Registers a member under a name. The registry looks at the member whenever it is asked, so
  /// assigning one layer's parameter to another's (`decoder.weight = embedding.weight`) shares it,
  /// and an undefined one (no bias) is skipped. Throws Error for an empty or dotted name and for
  /// one in use.
  template <class U>
  Parameter<U>& register_parameter(std::string name, Parameter<U>& member) {
    add_name(name);
    parameters_.push_back({std::move(name), &member, &get_parameter<U>, &move_parameter<U>});
    return member;
  }
  template <class U>
  Tensor<U>& register_buffer(std::string name, Tensor<U>& member) {
    add_name(name);
    buffers_.push_back({std::move(name), &member, &get_buffer<U>, &move_buffer<U>});
    return member;
  }
  /// A submodule that is a member.
  template <std::derived_from<AnyModule> M>
  M& register_module(std::string name, M& member) {
    add_name(name);
    children_.push_back({std::move(name), &member, nullptr});
    return member;
  }
  /// A submodule that may have other owners.
  template <std::derived_from<AnyModule> M>
  const std::shared_ptr<M>& register_module(std::string name, const std::shared_ptr<M>& child) {
    check<Error>(child != nullptr, "register_module", "expected a module, got null for \"", name,
                 "\"");
    add_name(name);
    children_.push_back({std::move(name), child.get(), child});
    return child;
  }

 private:
  template <class Value>
  struct Slot {
    std::string name;
    void* member;
    Value (*get)(const void* member);
    void (*move)(void* member, const void* same, Device device);
  };
  struct Child {
    std::string name;
    AnyModule* module;
    std::shared_ptr<AnyModule> owner;
  };

  template <class U>
  static AnyParameter get_parameter(const void* member) {
    const auto& p = *static_cast<const Parameter<U>*>(member);
    return p.defined() ? p.any() : AnyParameter();
  }
  // `same` is a parameter that shared with this one and has been moved already, or null.
  template <class U>
  static void move_parameter(void* member, const void* same, Device device) {
    auto& p = *static_cast<Parameter<U>*>(member);
    if (same != nullptr)
      p = *static_cast<const Parameter<U>*>(same);
    else if (p.defined() && p.device() != device)
      p = Parameter<U>(p.master().to(device));
  }
  template <class U>
  static AnyTensor get_buffer(const void* member) {
    return static_cast<const Tensor<U>*>(member)->any();
  }
  template <class U>
  static void move_buffer(void* member, const void*, Device device) {
    auto& t = *static_cast<Tensor<U>*>(member);
    if (t.defined()) t = t.to(device);
  }

  void add_name(std::string_view name) const;
  // Calls f(prefix, module) on this module and all below it, parents first.
  template <class F>
  void walk(const std::string& prefix, F&& f) const;

  std::vector<Slot<AnyParameter>> parameters_;
  std::vector<Slot<AnyTensor>> buffers_;
  std::vector<Child> children_;
  bool training_ = true;
};

/// The module and all below it, one line each with its description, then the number of parameters.
[[nodiscard]] std::string to_string(const AnyModule& module);

/// A module from Variable<T> to Variable<T>; activations and compute weights are T.
template <FloatElement T>
class Module : public AnyModule {
 public:
  using value_type = T;

  /// Modules with other inputs (Embedding) leave this as it is, which throws Error, and define
  /// their own overload.
  virtual Variable<T> forward(const Variable<T>& x);
  Variable<T> operator()(const Variable<T>& x) { return forward(x); }
};

template <FloatElement T>
Variable<T> Module<T>::forward(const Variable<T>&) {
  fail<Error>("forward", "expected a module that takes one float variable, got ", describe());
}

// GABLE_MODULE(extern, Linear) in a header declares what GABLE_MODULE(, Linear) in one source
// file instantiates, so that users compile no layers.
#define GABLE_MODULE(specifier, Name)    \
  specifier template class Name<float>;  \
  specifier template class Name<double>; \
  specifier template class Name<half>;   \
  specifier template class Name<bfloat16>;
GABLE_MODULE(extern, Module)

}  // namespace gable::nn
