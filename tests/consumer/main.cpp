// SPDX-License-Identifier: Apache-2.0
// Uses gable from another project, beside its own Eigen-free code.
#include <cstdio>
#include <gable/gable.hpp>

int main() {
  using namespace gable;
  const Variable<float> w(ones<float>({3, 2}), true);
  const Variable<float> y = matmul(Variable<float>(full<float>({4, 3}, 2.0F)), w);
  sum(relu(y)).backward();
  std::printf("%s\n", to_string(w.grad()).c_str());
  return w.grad()(0, 0) == 8.0F ? 0 : 1;
}
