// SPDX-License-Identifier: Apache-2.0
// End of the program that is made of docs/adding_an_op.md: checks its two operators.
#include <cmath>

#include "elementwise-inl.hpp"  // src/cpu

// What the list lines of the page would add.
GABLE_CPU_KERNEL(gable::UnaryArgs<gable::Softsign, double>)
GABLE_CPU_KERNEL(gable::UnaryBackwardArgs<gable::Softsign, double>)
template <gable::KernelArgs Args>
void gable::cuda::run(const Args&, const Stream&) {
  gable::fail<gable::DeviceError>(Args::name, "expected device cpu, got cuda");
}

namespace {

bool softsign_is_right() {
  using namespace gable;
  const auto softsign = [](const auto& in) { return apply(UnaryOp<Softsign, double>({}), in); };
  const Tensor<double> x = from_data<double>({-3, 0.25, 2});
  const Tensor<double> y = softsign(x);
  for (int64_t i = 0; i < 3; ++i)
    if (std::abs(y(i) - x(i) / (1 + std::abs(x(i)))) > 1e-15) return false;
  return gradcheck([&](const auto& in) { return softsign(in[0]); }, {x}).ok;
}

bool scale_rows_is_right() {
  using namespace gable::cases;
  for (const OpCase& c : all()) {
    if (c.name != "scale_rows") continue;
    const auto inputs = make_inputs(c, gable::DType::float64);
    std::vector<gable::Tensor<double>> typed;
    for (const auto& x : inputs) typed.push_back(in_layout(x, 1).as<double>());
    const auto got = c.run({typed[0], typed[1]}).as<double>().to_vector();
    return got == c.reference(typed).to_vector() && gable::gradcheck(c.run_grad, typed).ok;
  }
  return false;
}

}  // namespace

int main() {
  const bool elementwise = softsign_is_right();
  const bool structural = scale_rows_is_right();
  const bool custom = cube_gradient_is_right();
  std::printf("softsign %s, scale_rows %s, cube %s\n", elementwise ? "ok" : "WRONG",
              structural ? "ok" : "WRONG", custom ? "ok" : "WRONG");
  return elementwise && structural && custom ? 0 : 1;
}
