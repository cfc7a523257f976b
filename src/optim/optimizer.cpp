// SPDX-License-Identifier: Apache-2.0
// What optimizers share: groups, steps, saved state.
#include "gable/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include "gable/tensor/tensor.hpp"

namespace gable::optim {

namespace {

void check_lr(Where where, double lr) {
  check<TypeError>(std::isfinite(lr) && lr >= 0, where, "expected a finite lr >= 0, got ", lr);
}

std::string state_key(size_t index, const std::string& name) {
  return concat("state.", index, ".", name);
}

AnyTensor zeros_like_master(const AnyParameter& p) {
  return AnyTensor::zeros(p.master().layout().like(), p.master().dtype(), p.master().device());
}

template <class T>
void check_control(Where where, const Tensor<T>& value, const AnyParameter& p) {
  if (!value.defined()) return;
  check(value.numel() == 1, where, "expected one element of step control, got shape ",
        value.shape());
  detail::check_same_device(where, p.master(), value);
}
template <class T>
TensorView<const T> control_view(const Tensor<T>& value) {
  return value.defined() ? value.view() : TensorView<const T>{};
}

}  // namespace

void Optimizer::add_group(const std::vector<AnyParameter>& parameters, double lr) {
  check_lr(name(), lr);
  for (const AnyParameter& p : parameters) {
    check<TypeError>(p.master().defined(), name(),
                     "expected defined parameters, got an undefined one");
    check<TypeError>(std::find(parameters_.begin(), parameters_.end(), p) == parameters_.end(),
                     name(), "expected each parameter once, got one of shape ", p.shape(),
                     " twice");
    parameters_.push_back(p);
    State& state = states_.emplace_back();
    state.group = lr_.size();
  }
  lr_.push_back(lr);
  initial_lr_.push_back(lr);
}

void Optimizer::step(double gradient_scale, const StepControl& control) {
  for (const AnyParameter& p : parameters_) {
    const AnyTensor& g = p.gradient();
    if (!g.defined()) continue;
    check(g.shape() == p.shape(), name(), "expected a gradient of shape ", p.shape(), ", got ",
          g.shape());
    check<TypeError>(g.dtype() == p.master().dtype(), name(), "expected a gradient of dtype ",
                     p.master().dtype(), ", got ", g.dtype());
    detail::check_same_device(name(), p.master(), g);
    check_control(name(), control.scale, p);
    check_control(name(), control.found_inf, p);
    check_control(name(), control.skipped, p);
  }
  std::vector<Device> devices;
  for (const AnyParameter& p : parameters_)
    if (std::find(devices.begin(), devices.end(), p.master().device()) == devices.end())
      devices.push_back(p.master().device());
  for (const Device device : devices) {
    std::vector<Update> updates;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!parameters_[i].gradient().defined() || parameters_[i].master().device() != device)
        continue;
      State& state = states_[i];
      if (state.tensors.empty())
        for (size_t n = state_names(state.group).size(); n > 0; --n)
          state.tensors.push_back(zeros_like_master(parameters_[i]));
      ++state.steps;
      updates.push_back({&parameters_[i], &state, lr_[state.group]});
    }
    if (!updates.empty())
      update(updates, gradient_scale,
             {control_view(control.scale), control_view(control.found_inf),
              control_view(control.skipped)});
  }
}

void Optimizer::zero_grad(bool keep_memory) const {
  for (const AnyParameter& p : parameters_) {
    if (keep_memory && p.gradient().defined())
      p.gradient().zero_();
    else
      p.gradient() = AnyTensor();
  }
}

double Optimizer::lr(size_t group) const {
  check<IndexError>(group < lr_.size(), name(), "expected a group below ", lr_.size(), ", got ",
                    group);
  return lr_[group];
}

void Optimizer::set_lr(double lr) {
  check_lr("set_lr", lr);
  for (size_t g = 1; g < lr_.size(); ++g)
    lr_[g] = initial_lr_[0] > 0 ? lr * (initial_lr_[g] / initial_lr_[0]) : lr;
  lr_[0] = lr;
}

StateDict Optimizer::state_dict() const {
  StateDict dict;
  dict.add("lr",
           from_data<double>(std::span<const double>(lr_), {static_cast<int64_t>(lr_.size())}));
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    if (state.steps == 0) continue;
    dict.add(state_key(i, "step"), scalar<int64_t>(state.steps));
    const std::vector<std::string> names = state_names(state.group);
    for (size_t n = 0; n < names.size(); ++n) dict.add(state_key(i, names[n]), state.tensors[n]);
  }
  return dict;
}

void Optimizer::load_state_dict(const StateDict& dict) {
  size_t known = 0;
  std::string problems;
  // The entry if it is there and fits, counting it; notes a misfit.
  auto take = [&](const std::string& key, const Shape& shape, DType dtype) -> const AnyTensor* {
    const AnyTensor* t = dict.find(key);
    if (t == nullptr) return nullptr;
    ++known;
    if (t->defined() && t->shape() == shape && t->dtype() == dtype) return t;
    problems += concat("\n  ", key, ": expected ", shape, " ", dtype, ", got ", t->shape(), " ",
                       t->dtype());
    return nullptr;
  };
  const AnyTensor* lr = take("lr", {static_cast<int64_t>(lr_.size())}, DType::float64);
  if (lr == nullptr) problems += "\n  lr: missing";
  std::vector<State> loaded(states_.size());
  for (size_t i = 0; i < states_.size(); ++i) {
    loaded[i].group = states_[i].group;
    const AnyTensor* step = take(state_key(i, "step"), {}, DType::int64);
    if (step == nullptr) continue;
    loaded[i].steps = step->as<int64_t>().item();
    const AnyTensor& master = parameters_[i].master();
    for (const std::string& n : state_names(loaded[i].group)) {
      const AnyTensor* t = take(state_key(i, n), master.shape(), master.dtype());
      if (t == nullptr)
        problems += concat("\n  ", state_key(i, n), ": missing");
      else
        loaded[i].tensors.push_back(*t);
    }
  }
  if (known != dict.size() || !problems.empty())
    fail<Error>("load_state_dict", "expected the state of ", name(), " over ", parameters_.size(),
                " parameters, got a state dict of ", dict.size(), " entries, ", dict.size() - known,
                " of them unknown", problems);
  for (size_t i = 0; i < loaded.size(); ++i)
    for (AnyTensor& t : loaded[i].tensors) {
      AnyTensor own = AnyTensor::empty(parameters_[i].master().layout().like(), t.dtype(),
                                       parameters_[i].master().device());
      own.copy_(t);
      t = own;
    }
  states_ = std::move(loaded);
  lr_ = lr->as<double>().to_vector();
}

}  // namespace gable::optim
