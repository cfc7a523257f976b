// SPDX-License-Identifier: Apache-2.0
// Losses.
#include "gable/ops/loss.hpp"

#include <cmath>

#include "op_case.hpp"

namespace gable::cases {
namespace {

// Labels of every class, some ignored where asked.
Tensor<int64_t> labels(const Shape& shape, int64_t classes, bool ignore) {
  Tensor<int64_t> t(shape);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data()[i] = ignore && i % 4 == 2 ? -100 : (i * i + 1) % classes;
  return t;
}

struct Setting {
  const char* name;
  Shape shape;
  double smoothing = 0;
  bool ignore = false;
  bool weights = false;
  Reduction reduction = Reduction::mean;
};

Tensor<double> class_weights(int64_t classes) {
  Tensor<double> w({classes});
  for (int64_t c = 0; c < classes; ++c) w.data()[c] = 0.25 * static_cast<double>(c + 2);
  return w;
}
Shape positions_of(const Setting& s) {
  Shape positions = s.shape;
  positions.erase(1);
  return positions;
}

Tensor<double> cross_entropy_of(const Setting& s, const Tensor<double>& x) {
  const int64_t classes = s.shape[1];
  const Tensor<int64_t> targets = labels(positions_of(s), classes, s.ignore);
  const Tensor<double> w = class_weights(classes);
  const int64_t inner = targets.numel() / std::max<int64_t>(1, s.shape[0]);
  Tensor<double> loss(targets.shape());
  double sum = 0;
  double total = 0;
  for (int64_t p = 0; p < targets.numel(); ++p) {
    const int64_t t = targets.data()[p];
    auto logit = [&](int64_t c) { return x.data()[(p / inner * classes + c) * inner + p % inner]; };
    double lse = 0;
    for (int64_t c = 0; c < classes; ++c) lse += std::exp(logit(c));
    lse = std::log(lse);
    auto weight = [&](int64_t c) { return s.weights ? w.data()[c] : 1; };
    double value = 0;
    if (t != -100) {
      value = (1 - s.smoothing) * weight(t) * (lse - logit(t));
      for (int64_t c = 0; c < classes; ++c)
        value += s.smoothing / static_cast<double>(classes) * weight(c) * (lse - logit(c));
      total += weight(t);
    }
    loss.data()[p] = value;
    sum += value;
  }
  if (s.reduction == Reduction::none) return loss;
  if (s.reduction == Reduction::sum) return scalar(sum);
  return scalar(total == 0 ? 0 : sum / total);
}

void add_cross_entropy(const Register::Add& add, const Setting& s, bool large = false) {
  OpCase c = differentiable(
      concat("cross_entropy/", s.name), {{s.shape}},
      [s](const auto& in) {
        CrossEntropyOptions o{.label_smoothing = s.smoothing, .reduction = s.reduction};
        if (s.weights) o.class_weights = class_weights(s.shape[1]).to(in[0].device());
        const auto targets = labels(positions_of(s), s.shape[1], s.ignore);
        return cross_entropy(in[0], targets.to(in[0].device()), o);
      },
      [s](const std::vector<Tensor<double>>& in) { return cross_entropy_of(s, in[0]); });
  c.gradient = !large;
  c.benchmark = large;
  add(std::move(c));
}

const Register register_cross_entropy([](const Register::Add& add) {
  add_cross_entropy(add, {"plain", {5, 7}});
  add_cross_entropy(add, {"one_class", {3, 1}});
  add_cross_entropy(add, {"smoothing", {5, 7}, 0.2});
  add_cross_entropy(add, {"ignore", {9, 4}, 0, true});
  add_cross_entropy(add, {"weights", {9, 4}, 0, false, true});
  add_cross_entropy(add, {"everything", {9, 4}, 0.1, true, true});
  add_cross_entropy(add, {"sum", {9, 4}, 0.1, true, true, Reduction::sum});
  add_cross_entropy(add, {"none", {9, 4}, 0.1, true, true, Reduction::none});
  add_cross_entropy(add, {"spatial", {2, 3, 5, 7}, 0.1, true, true});
  add_cross_entropy(add, {"spatial_none", {2, 5, 3}, 0, true, false, Reduction::none});
  add_cross_entropy(add, {"no_rows", {0, 4}});
  add_cross_entropy(add, {"large", {257, 331}}, true);
  add_cross_entropy(add, {"large_spatial", {2, 21, 31, 33}, 0.1, true, true}, true);
});

using Pair = double (*)(double x, double t, double w);
double mse(double x, double t, double) { return (x - t) * (x - t); }
double l1(double x, double t, double) { return std::abs(x - t); }
double bce(double x, double t, double w) {
  const double p = 1 / (1 + std::exp(-x));
  return -(w * t * std::log(p) + (1 - t) * std::log(1 - p));
}

auto reduced(Pair f, Reduction reduction, bool weighted = false) {
  return [=](const std::vector<Tensor<double>>& in) {
    Tensor<double> loss(in[0].shape());
    double sum = 0;
    for (int64_t i = 0; i < loss.numel(); ++i) {
      const double w = weighted ? 0.25 * static_cast<double>(i % 4 + 2) : 1;
      sum += loss.data()[i] = f(in[0].data()[i], in[1].data()[i], w);
    }
    if (reduction == Reduction::none) return loss;
    const auto n = static_cast<double>(loss.numel());
    return scalar(reduction == Reduction::sum ? sum : n == 0 ? 0 : sum / n);
  };
}

#define PAIR_LOSS(call) [r](const auto& in) { return call(in[0], in[1], r); }

const Register register_pairs([](const Register::Add& add) {
  const std::vector<std::pair<const char*, Reduction>> reductions = {
      {"mean", Reduction::mean}, {"sum", Reduction::sum}, {"none", Reduction::none}};
  for (const auto& [name, reduction] : reductions) {
    const Reduction r = reduction;
    const std::vector<Input> any = {{{5, 4}}, {{5, 4}}};
    const std::vector<Input> labelled = {{{5, 4}}, {{5, 4}, 0, 1}};
    add(differentiable(concat("mse_loss/", name), any, PAIR_LOSS(mse_loss), reduced(mse, r)));
    add(differentiable(concat("l1_loss/", name), any, PAIR_LOSS(l1_loss), reduced(l1, r)));
    add(differentiable(concat("bce_with_logits/", name), labelled,
                       PAIR_LOSS(binary_cross_entropy_with_logits), reduced(bce, r)));
    add(differentiable(
        concat("bce_with_logits/weighted_", name), labelled,
        [r](const auto& in) {
          return binary_cross_entropy_with_logits(in[0], in[1], r,
                                                  class_weights(4).to(in[0].device()));
        },
        reduced(bce, r, true)));
  }
  const Reduction r = Reduction::mean;
  add(differentiable("mse_loss/empty", {{{0, 4}}, {{0, 4}}}, PAIR_LOSS(mse_loss), reduced(mse, r)));
  OpCase c = differentiable("mse_loss/large", {{{257, 331}}, {{257, 331}}}, PAIR_LOSS(mse_loss),
                            reduced(mse, r));
  c.gradient = false;
  c.benchmark = true;
  add(std::move(c));
});

}  // namespace
}  // namespace gable::cases
