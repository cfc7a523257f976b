// SPDX-License-Identifier: Apache-2.0
// Cross-entropy: one pass over the logits forward, one backward.
#include "gable/ops/loss.hpp"

#include <limits>

#include "kernel.hpp"
#include "lines.hpp"
#include "softmax-inl.hpp"

namespace gable {
namespace {

// (N, d...) as a view of (N, C, d...) that does not move along C.
Layout along_classes(const Layout& positions, const Shape& shape) {
  return positions.unsqueeze(1).expand(shape);
}

// What every position shares: (1 - s), s / C, and sum_c w[c].
template <class C>
struct ClassWeights {
  const C* weight;
  double hard;
  double soft;
  double total;

  ClassWeights(const TensorView<const C>& w, double smoothing, int64_t classes)
      : weight(w.data),
        hard(1 - smoothing),
        soft(classes > 0 ? smoothing / static_cast<double>(classes) : 0),
        total(static_cast<double>(classes)) {
    if (weight == nullptr) return;
    total = 0;
    for (int64_t c = 0; c < classes; ++c) total += static_cast<double>(weight[c]);
  }
  [[nodiscard]] double of(int64_t c) const {
    return weight != nullptr ? static_cast<double>(weight[c]) : 1;
  }
};

}  // namespace

template <class T>
static void kernel(const CrossEntropyArgs<T>& a) {
  using C = Compute<T>;
  const Layout targets = along_classes(a.targets.layout, a.x.shape());
  const Layout positions = along_classes(a.lse.layout, a.x.shape());
  const cpu::Lines<3> lines({&a.x.layout, &targets, &positions}, 1);
  const int64_t classes = lines.length;
  const ClassWeights<C> weights(a.weight, a.smoothing, classes);
  const int64_t count = a.lse.numel();
  const cpu::Scratch<double> losses(count);
  const cpu::Scratch<double> counted(count);
  const int64_t width = lines.blocked ? cpu::kLineBlock : 1;
  lines.parallel([&](const auto& at, int64_t n) {
    cpu::LineBuffer<C> buffer(classes * width);
    C* row = buffer.data();
    cpu::load_lines(row, a.x.data + at[0], classes, lines.steps[0], n, lines.neighbours[0],
                    lines.blocked);
    double lse[cpu::kLineBlock];
    double smooth[cpu::kLineBlock] = {};  // sum_c w[c] x[c]
    double own[cpu::kLineBlock] = {};     // x[t]
    for (int64_t j = 0; j < n; ++j) {
      const int64_t t = a.targets.data[at[1] + j * lines.neighbours[1]];
      if (t != a.ignore_index) own[j] = static_cast<double>(row[t * width + j]);
    }
    if (a.smoothing != 0)
      for (int64_t c = 0; c < classes; ++c)
        for (int64_t j = 0; j < n; ++j)
          smooth[j] += weights.of(c) * static_cast<double>(row[c * width + j]);
    if (lines.blocked)
      cpu::log_sum_exp<cpu::kLineBlock>(lse, row, classes);
    else
      cpu::log_sum_exp<1>(lse, row, classes);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t position = at[2] + j * lines.neighbours[2];
      const int64_t t = a.targets.data[at[1] + j * lines.neighbours[1]];
      a.lse.data[position] = lse[j];
      if (t == a.ignore_index) {
        losses[position] = counted[position] = 0;
        continue;
      }
      const double w = weights.of(t);
      double loss = weights.hard * w * (lse[j] - own[j]);
      if (a.smoothing != 0) loss += weights.soft * (weights.total * lse[j] - smooth[j]);
      losses[position] = loss;
      counted[position] = w;
    }
  });
  *a.scale.data = 1;
  if (a.reduction == Reduction::none) {
    for (int64_t i = 0; i < count; ++i) a.loss.data[i] = static_cast<C>(losses[i]);
    return;
  }
  double sum = 0;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += losses[i];
    total += counted[i];
  }
  if (a.reduction == Reduction::mean) *a.scale.data = total > 0 ? 1 / total : 0;
  *a.loss.data = static_cast<C>(*a.scale.data == 0 ? 0 : sum * *a.scale.data);
}
GABLE_CPU_KERNEL_FLOATS(CrossEntropyArgs)

template <class T>
static void kernel(const CrossEntropyBackwardArgs<T>& a) {
  using C = Compute<T>;
  const Layout targets = along_classes(a.targets.layout, a.x.shape());
  const Layout positions = along_classes(a.lse.layout, a.x.shape());
  const Layout gradients = along_classes(a.dy.layout, a.x.shape());
  const cpu::Lines<5> lines({&a.dx.layout, &a.x.layout, &targets, &positions, &gradients}, 1);
  const int64_t classes = lines.length;
  const ClassWeights<C> weights(a.weight, a.smoothing, classes);
  const int64_t width = lines.blocked ? cpu::kLineBlock : 1;
  lines.parallel([&](const auto& at, int64_t n) {
    cpu::LineBuffer<C> buffer(classes * width);
    C* row = buffer.data();
    cpu::load_lines(row, a.x.data + at[1], classes, lines.steps[1], n, lines.neighbours[1],
                    lines.blocked);
    C lse[cpu::kLineBlock] = {};
    C factor[cpu::kLineBlock] = {};  // of the probabilities
    double gradient[cpu::kLineBlock] = {};
    for (int64_t j = 0; j < n; ++j) {
      const int64_t t = a.targets.data[at[2] + j * lines.neighbours[2]];
      lse[j] = static_cast<C>(a.lse.data[at[3] + j * lines.neighbours[3]]);
      if (t == a.ignore_index) continue;
      gradient[j] = static_cast<double>(a.dy.data[at[4] + j * lines.neighbours[4]]) * *a.scale.data;
      factor[j] = static_cast<C>(gradient[j] *
                                 (weights.hard * weights.of(t) + weights.soft * weights.total));
    }
    if (lines.blocked)
      cpu::exp_times<cpu::kLineBlock>(row, lse, factor, classes);
    else
      cpu::exp_times<1>(row, lse, factor, classes);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t t = a.targets.data[at[2] + j * lines.neighbours[2]];
      if (t == a.ignore_index) {
        for (int64_t c = 0; c < classes; ++c) row[c * width + j] = C(0);
        continue;
      }
      row[t * width + j] -= static_cast<C>(gradient[j] * weights.hard * weights.of(t));
      if (a.smoothing != 0)
        for (int64_t c = 0; c < classes; ++c)
          row[c * width + j] -= static_cast<C>(gradient[j] * weights.soft * weights.of(c));
    }
    cpu::store_lines(a.dx.data + at[0], row, classes, lines.steps[0], n, lines.neighbours[0],
                     lines.blocked);
  });
}
GABLE_CPU_KERNEL_FLOATS(CrossEntropyBackwardArgs)

}  // namespace gable
