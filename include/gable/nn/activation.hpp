// SPDX-License-Identifier: Apache-2.0
// Activation functions and dropout as modules.
#pragma once

#include <cstdint>
#include <string>

#include "gable/nn/module.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/elementwise.hpp"

namespace gable::nn {

#define GABLE_ACTIVATION(Name, function)                                       \
  template <FloatElement T>                                                    \
  class Name : public Module<T> {                                              \
   public:                                                                     \
    Variable<T> forward(const Variable<T>& x) override { return function(x); } \
    [[nodiscard]] std::string describe() const override { return #Name; }      \
  };                                                                           \
  GABLE_MODULE(extern, Name)
GABLE_ACTIVATION(ReLU, relu)
GABLE_ACTIVATION(SiLU, silu)
GABLE_ACTIVATION(Tanh, tanh)
GABLE_ACTIVATION(Sigmoid, sigmoid)
GABLE_ACTIVATION(Softplus, softplus)
#undef GABLE_ACTIVATION

template <FloatElement T>
class LeakyReLU : public Module<T> {
 public:
  explicit LeakyReLU(double negative_slope = 0.01) : slope(negative_slope) {}
  Variable<T> forward(const Variable<T>& x) override { return leaky_relu(x, slope); }
  [[nodiscard]] std::string describe() const override { return concat("LeakyReLU(", slope, ")"); }

  double slope;
};

/// x Phi(x) by erf, or its tanh approximation.
template <FloatElement T>
class GELU : public Module<T> {
 public:
  explicit GELU(bool tanh_approximation = false) : approximate(tanh_approximation) {}
  Variable<T> forward(const Variable<T>& x) override {
    return approximate ? gelu_tanh(x) : gelu(x);
  }
  [[nodiscard]] std::string describe() const override {
    return approximate ? "GELU(tanh)" : "GELU";
  }

  bool approximate;
};

/// Zeroes elements with `probability` and scales the others, while training.
template <FloatElement T>
class Dropout : public Module<T> {
 public:
  explicit Dropout(double p = 0.5, Generator& g = default_generator())
      : probability(p), generator_(&g) {}
  Variable<T> forward(const Variable<T>& x) override {
    return dropout(x, probability, this->training(), *generator_);
  }
  [[nodiscard]] std::string describe() const override {
    return concat("Dropout(", probability, ")");
  }

  double probability;

 private:
  Generator* generator_;
};
GABLE_MODULE(extern, LeakyReLU)
GABLE_MODULE(extern, GELU)
GABLE_MODULE(extern, Dropout)

}  // namespace gable::nn
