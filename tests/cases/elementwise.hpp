// SPDX-License-Identifier: Apache-2.0
// Shapes that every elementwise operator is tried on.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "gable/ops/elementwise.hpp"
#include "op_case.hpp"

namespace gable::cases {

using Reference1 = double (*)(double);
using Reference2 = double (*)(double, double);

/// Range of an input's values.
struct Range {
  double low = -2;
  double high = 2;
};

/// Elementwise operators round once, so that they are held to less than the usual tolerance.
inline OpCase tightened(OpCase c) {
  c.float32 = {1e-6, 1e-6};
  c.float64 = {1e-14, 1e-14};
  c.float16 = {1e-3, 1e-3};
  c.bfloat16 = {8e-3, 8e-3};
  return c;
}

/// Cases of one unary operator: odd sizes, rank 0, empty, one element, and enough elements for
/// two threads. `run` takes one Tensor, and one Variable if there is a gradient.
template <bool kGradient = true, class Run>
void add_unary(const Register::Add& add, const std::string& name, Range range, Run run,
               Reference1 reference) {
  const std::vector<std::pair<const char*, Shape>> shapes = {
      {"", {3, 5}},     {"/rank0", {}},           {"/empty", {0, 3}},
      {"/one", {1, 1}}, {"/rank4", {2, 3, 1, 4}}, {"/large", {257, 331}}};
  for (const auto& [suffix, shape] : shapes) {
    OpCase c = tightened(forward_only(
        name + suffix, {{shape, range.low, range.high}},
        [run](const auto& in) { return run(in[0]); },
        pointwise([reference](const auto& v) { return reference(v[0]); })));
    const bool large = numel(shape) > 100;
    if constexpr (kGradient) {
      c.run_grad = [run](const std::vector<Variable<double>>& in) { return run(in[0]); };
      c.backward = [run](const std::vector<AnyTensor>& in, const Tensor<double>& dy) {
        return detail::backward_any([&](const auto& v) { return run(v[0]); }, in, dy);
      };
      c.gradient = !large;
    }
    c.benchmark = large;
    add(std::move(c));
  }
}

/// Cases of one binary operator: equal shapes, both operands broadcast, rank 0, empty, and large
/// ones with and without broadcasting.
template <bool kGradient = true, class Run>
void add_binary(const Register::Add& add, const std::string& name, Range a, Range b, Run run,
                Reference2 reference) {
  struct Shapes {
    const char* suffix;
    Shape a;
    Shape b;
  };
  const std::vector<Shapes> shapes = {{"", {3, 5}, {3, 5}},
                                      {"/broadcast", {3, 1, 5}, {4, 1}},
                                      {"/left_rank0", {}, {2, 3}},
                                      {"/right_rank0", {2, 3}, {}},
                                      {"/empty", {0, 3}, {1, 3}},
                                      {"/large", {257, 331}, {257, 331}},
                                      {"/large_row", {257, 331}, {331}},
                                      {"/large_column", {257, 1}, {257, 331}}};
  for (const auto& [suffix, shape_a, shape_b] : shapes) {
    OpCase c = tightened(forward_only(
        name + suffix, {{shape_a, a.low, a.high}, {shape_b, b.low, b.high}},
        [run](const auto& in) { return run(in[0], in[1]); },
        pointwise([reference](const auto& v) { return reference(v[0], v[1]); })));
    const bool large = numel(shape_a) > 100;
    if constexpr (kGradient) {
      c.run_grad = [run](const std::vector<Variable<double>>& in) { return run(in[0], in[1]); };
      c.backward = [run](const std::vector<AnyTensor>& in, const Tensor<double>& dy) {
        return detail::backward_any([&](const auto& v) { return run(v[0], v[1]); }, in, dy);
      };
      c.gradient = !large;
    }
    c.benchmark = large;
    add(std::move(c));
  }
}

// A generic lambda that calls `function`, and one that gives its two operands to it.
#define GABLE_CALL1(function) [](const auto& x) { return function(x); }
#define GABLE_CALL2(function) [](const auto& a, const auto& b) { return function(a, b); }

}  // namespace gable::cases
