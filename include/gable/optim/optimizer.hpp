// SPDX-License-Identifier: Apache-2.0
// Optimizer: what SGD and AdamW share. Parameters in groups, learning rates, saved state.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gable/autograd/variable.hpp"
#include "gable/ops/optimizer.hpp"
#include "gable/tensor/state_dict.hpp"

namespace gable::optim {

/// Parameters with settings of their own.
template <class Options>
struct ParamGroup {
  std::vector<AnyParameter> parameters;
  Options options = {};
};

/// Two groups: parameters of rank 2 and more with `options`, the others (of norms, biases) with the
/// same but no weight decay.
template <class Options>
[[nodiscard]] std::vector<ParamGroup<Options>> decay_groups(
    const std::vector<AnyParameter>& parameters, const Options& options) {
  std::vector<ParamGroup<Options>> groups{{{}, options}, {{}, options}};
  groups[1].options.weight_decay = 0;
  for (const AnyParameter& p : parameters)
    groups[p.shape().size() > 1 ? 0 : 1].parameters.push_back(p);
  return groups;
}

/// What a step reads on the parameters' device when it runs, so that nothing waits for it: tensors
/// of one element, undefined where there is nothing to say.
struct StepControl {
  Tensor<float> scale = {};      ///< multiplies gradients (a clipping factor)
  Tensor<float> found_inf = {};  ///< not 0: the step changes nothing
  Tensor<int64_t> skipped = {};  ///< earlier steps of this optimizer that changed nothing
};

/// Changes parameters by their gradients. Parameters are updated in their master (float or
/// double) by one launch for all of a dtype, which also rounds into the compute copies; those
/// without a gradient are skipped and keep their state.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// One update. Gradients are multiplied by `gradient_scale` as they are read (1 / loss scale,
  /// or 1 / number of accumulated batches). Throws ShapeError or DeviceError for a gradient that
  /// does not fit its parameter, before anything is changed.
  void step(double gradient_scale = 1, const StepControl& control = {});
  /// Drops all gradients, or with `keep_memory` fills them with zeros.
  void zero_grad(bool keep_memory = false) const;

  /// All parameters, group by group.
  [[nodiscard]] const std::vector<AnyParameter>& parameters() const { return parameters_; }
  [[nodiscard]] size_t groups() const { return lr_.size(); }
  /// The group's present learning rate.
  [[nodiscard]] double lr(size_t group = 0) const;
  /// Sets the first group's learning rate and the others' in proportion to the ones they were
  /// made with, so that one schedule drives all groups. Throws TypeError unless finite and >= 0.
  void set_lr(double lr);

  /// Handles of the state, named "state.INDEX.NAME" by position in parameters() (NAME as in
  /// PyTorch: momentum_buffer; exp_avg, exp_avg_sq; step), and "lr", one value a group. A run that
  /// loads it continues bit for bit.
  [[nodiscard]] StateDict state_dict() const;
  /// Copies a saved state in. Throws one Error for names, shapes or dtypes that do not fit; then
  /// nothing is changed.
  void load_state_dict(const StateDict& dict);

 protected:
  /// State of one parameter: the tensors that state_names() lists, made at its first update.
  struct State {
    size_t group = 0;
    int64_t steps = 0;  ///< updates done
    std::vector<AnyTensor> tensors;
  };

  Optimizer() = default;
  /// Throws TypeError for a parameter that is undefined or given twice, or an invalid `lr`.
  void add_group(const std::vector<AnyParameter>& parameters, double lr);
  /// One parameter to update; `state->steps` counts this update already, and new state tensors
  /// are zero.
  struct Update {
    const AnyParameter* parameter;
    State* state;
    double lr;
  };
  /// All of them on one device.
  virtual void update(const std::vector<Update>& updates, double gradient_scale,
                      const UpdateControl& control) = 0;
  /// Names of the state tensors of a group's parameters.
  [[nodiscard]] virtual std::vector<std::string> state_names(size_t group) const = 0;
  [[nodiscard]] virtual const char* name() const = 0;

 private:
  std::vector<AnyParameter> parameters_;
  std::vector<State> states_;
  std::vector<double> lr_;
  std::vector<double> initial_lr_;
};

}  // namespace gable::optim
