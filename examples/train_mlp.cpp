// SPDX-License-Identifier: Apache-2.0
// Trains a small network on three interleaved spirals with a plain loop; takes seconds.
#include <cmath>
#include <cstdio>
#include <numbers>

#include "gable/models/mlp.hpp"
#include "gable/ops/loss.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/optim/schedule.hpp"

using namespace gable;

struct Points {
  Tensor<float> x;         // (N, 2)
  Tensor<int64_t> labels;  // (N)
};

// `n` points on each of three arms, with noise.
Points spirals(int64_t n, Generator& g) {
  Points p{Tensor<float>({3 * n, 2}), Tensor<int64_t>({3 * n})};
  const Tensor<float> noise = randn<float>({3 * n}, 0, 0.12, {}, g);
  for (int64_t i = 0; i < 3 * n; ++i) {
    const float radius = 0.1F + 0.9F * static_cast<float>(i / 3) / static_cast<float>(n);
    const auto turn = static_cast<float>(i % 3) * 2 * std::numbers::pi_v<float> / 3;
    const float angle = 5 * radius + turn + noise(i);
    p.x(i, 0) = radius * std::cos(angle);
    p.x(i, 1) = radius * std::sin(angle);
    p.labels(i) = i % 3;
  }
  return p;
}

double accuracy(models::MLP<float>& model, const Points& p) {
  const NoGrad no_grad;
  const Tensor<bool> right = eq(argmax(model(p.x).value(), 1), p.labels);
  return static_cast<double>(sum(right).item()) / static_cast<double>(p.labels.numel());
}

int main() {
  Generator g(1);
  const Points train = spirals(300, g);
  const Points test = spirals(200, g);
  models::MLP<float> model({2, 64, 64, 3}, {}, g);
  optim::AdamW adam(model.parameters(), {.lr = 0.01, .weight_decay = 1e-3});
  const int64_t steps = 400;
  const optim::CosineWarmup schedule{.lr = 0.01, .total_steps = steps, .warmup = 20};
  for (int64_t step = 0; step < steps; ++step) {
    adam.set_lr(schedule(step));
    const Variable<float> loss = cross_entropy(model(train.x), train.labels);
    loss.backward();
    adam.step();
    adam.zero_grad();
    if (step % 50 == 0 || step + 1 == steps)
      std::printf("step %3d  loss %.4f  test accuracy %.1f %%\n", static_cast<int>(step),
                  static_cast<double>(loss.item()), 100 * accuracy(model, test));
  }
  const double final_accuracy = accuracy(model, test);
  std::printf("test accuracy %.1f %%\n", 100 * final_accuracy);
  return final_accuracy > 0.95 ? 0 : 1;
}
