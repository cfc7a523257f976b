// SPDX-License-Identifier: Apache-2.0
// Tensors, views, broadcasting and gradients in 40 lines.
#include <cstdio>

#include "gable/gable.hpp"
#include "gable/ops/matmul.hpp"

using namespace gable;

int main() {
  // 0 .. 11 as three rows. Views share memory: writing to the column changes x.
  const Tensor<float> x = arange<float>(12).view({3, 4});
  const Tensor<float> column = x.select(1, 0);
  column.fill_(-1);
  std::printf("x =\n%s\n", to_string(x).c_str());
  std::printf("x.t().slice(0, 1, 3) =\n%s\n", to_string(x.t().slice(0, 1, 3)).c_str());

  // Broadcasting: (3, 4) * (4) + (3, 1).
  const auto scale = from_data<float>({1, 10, 100, 1000});
  const auto shift = from_data<float>({1, 2, 3}, {3, 1});
  std::printf("x * scale + shift =\n%s\n", to_string(x * scale + shift).c_str());

  // Errors name the operator and what it got.
  try {
    (void)(x + from_data<float>({1, 2, 3}));
  } catch (const ShapeError& e) {
    std::printf("an error: %s\n\n", e.message().c_str());
  }

  // Gradients: y = w . tanh(v), so dy/dw = tanh(v) and dy/dv = w (1 - tanh(v)^2).
  const Variable<float> w(from_data<float>({1, 2, 3}), true);
  const Variable<float> v(from_data<float>({0, 0.5F, -0.5F}), true);
  const Variable<float> y = matmul(w, tanh(v));
  y.backward();
  std::printf("y = %g\ndy/dw = %s\ndy/dv = %s\n", static_cast<double>(y.item()),
              to_string(w.grad()).c_str(), to_string(v.grad()).c_str());
}
