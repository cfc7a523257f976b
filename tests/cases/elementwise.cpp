// SPDX-License-Identifier: Apache-2.0
// Elementwise operators.
#include "gable/ops/elementwise.hpp"

#include <cmath>

#include "op_case.hpp"

namespace gable::cases {
namespace {

const Register register_elementwise([](const Register::Add& add) {
  add(differentiable("tanh", {{{3, 5}}}, [](const auto& in) { return tanh(in[0]); },
                     pointwise([](const auto& v) { return std::tanh(v[0]); })));
  add(differentiable("mul/broadcast", {{{3, 1, 5}}, {{4, 1}}},
                     [](const auto& in) { return in[0] * in[1]; },
                     pointwise([](const auto& v) { return v[0] * v[1]; })));
});

}  // namespace
}  // namespace gable::cases
