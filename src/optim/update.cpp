// SPDX-License-Identifier: Apache-2.0
// SGD and AdamW: settings and the launch of their kernels.
#include "gable/optim/sgd.hpp"

#include <cmath>
#include <tuple>

#include "gable/ops/optimizer.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/tensor/backend.hpp"

namespace gable::optim {

namespace {

// Calls f(UpdateViews<T>) for the type of the compute copy.
template <class F>
void visit_views(Where where, const AnyParameter& p, F&& f) {
  visit_dtype(p.value().dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (FloatElement<T>) {
      using C = Compute<T>;
      UpdateViews<T> at;
      at.master = p.master().write_view(where).template as<C>();
      at.value = p.value().write_view(where).template as<T>();
      at.gradient = p.gradient().view().template as<const C>();
      f(at);
    }
  });
}

template <class T>
TensorView<Compute<T>> state_view(const AnyTensor& t) {
  return t.view().as<Compute<T>>();
}

// Calls of one kernel, launched together by dtype.
template <template <class> class Args>
class Calls {
 public:
  template <class T>
  void add(const Args<T>& args) {
    std::get<std::vector<Args<T>>>(calls_).push_back(args);
  }
  void launch(Device device) const {
    std::apply([&](const auto&... calls) { (launch_one(device, calls), ...); }, calls_);
  }

 private:
  template <class A>
  static void launch_one(Device device, const std::vector<A>& calls) {
    if (!calls.empty()) gable::launch(device, ManyArgs<A>{calls});
  }
  std::tuple<std::vector<Args<float>>, std::vector<Args<double>>, std::vector<Args<half>>,
             std::vector<Args<bfloat16>>>
      calls_;
};

void check_at_least_0(Where where, const char* what, double value) {
  check<TypeError>(std::isfinite(value) && value >= 0, where, "expected a finite ", what,
                   " >= 0, got ", value);
}

void check_beta(const char* what, double value) {
  check<TypeError>(value >= 0 && value < 1, "adamw", "expected ", what, " in [0, 1), got ", value);
}

}  // namespace

SGD::SGD(const std::vector<AnyParameter>& parameters, const SGDOptions& options)
    : SGD(std::vector<ParamGroup<SGDOptions>>{{parameters, options}}) {}

SGD::SGD(const std::vector<ParamGroup<SGDOptions>>& groups) {
  check<TypeError>(!groups.empty(), "sgd", "expected at least one group, got 0");
  for (const auto& [parameters, o] : groups) {
    check_at_least_0("sgd", "momentum", o.momentum);
    check_at_least_0("sgd", "weight_decay", o.weight_decay);
    check<TypeError>(std::isfinite(o.dampening), "sgd", "expected a finite dampening, got ",
                     o.dampening);
    check<TypeError>(!o.nesterov || (o.momentum > 0 && o.dampening == 0), "sgd",
                     "expected momentum > 0 and dampening 0 with nesterov, got momentum ",
                     o.momentum, " and dampening ", o.dampening);
    add_group(parameters, o.lr);
    options_.push_back(o);
  }
}

std::vector<std::string> SGD::state_names(size_t group) const {
  if (options_[group].momentum == 0) return {};
  return {"momentum_buffer"};
}

void SGD::update(const std::vector<Update>& updates, double gradient_scale,
                 const UpdateControl& control) {
  Calls<SgdArgs> calls;
  for (const Update& u : updates) {
    const SGDOptions& o = options_[u.state->group];
    visit_views("sgd", *u.parameter, [&]<class T>(const UpdateViews<T>& at) {
      SgdArgs<T> args{.at = at,
                      .buffer = {},
                      .lr = u.lr,
                      .momentum = o.momentum,
                      .dampening = o.dampening,
                      .weight_decay = o.weight_decay,
                      .gradient_scale = gradient_scale,
                      .nesterov = o.nesterov,
                      .steps = u.state->steps,
                      .control = control};
      if (o.momentum != 0) args.buffer = state_view<T>(u.state->tensors[0]);
      calls.add(args);
    });
  }
  calls.launch(updates.front().parameter->master().device());
}

AdamW::AdamW(const std::vector<AnyParameter>& parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParamGroup<AdamWOptions>>{{parameters, options}}) {}

AdamW::AdamW(const std::vector<ParamGroup<AdamWOptions>>& groups) {
  check<TypeError>(!groups.empty(), "adamw", "expected at least one group, got 0");
  for (const auto& [parameters, o] : groups) {
    check_beta("beta1", o.beta1);
    check_beta("beta2", o.beta2);
    check_at_least_0("adamw", "eps", o.eps);
    check_at_least_0("adamw", "weight_decay", o.weight_decay);
    add_group(parameters, o.lr);
    options_.push_back(o);
  }
}

std::vector<std::string> AdamW::state_names(size_t) const { return {"exp_avg", "exp_avg_sq"}; }

void AdamW::update(const std::vector<Update>& updates, double gradient_scale,
                   const UpdateControl& control) {
  Calls<AdamArgs> calls;
  for (const Update& u : updates) {
    const AdamWOptions& o = options_[u.state->group];
    visit_views("adamw", *u.parameter, [&]<class T>(const UpdateViews<T>& at) {
      calls.add(AdamArgs<T>{.at = at,
                            .mean = state_view<T>(u.state->tensors[0]),
                            .square = state_view<T>(u.state->tensors[1]),
                            .beta1 = o.beta1,
                            .beta2 = o.beta2,
                            .eps = o.eps,
                            .lr = u.lr,
                            .shrink = o.decoupled ? 1 - u.lr * o.weight_decay : 1,
                            .weight_decay = o.decoupled ? 0 : o.weight_decay,
                            .gradient_scale = gradient_scale,
                            .steps = u.state->steps,
                            .control = control});
    });
  }
  calls.launch(updates.front().parameter->master().device());
}

}  // namespace gable::optim
