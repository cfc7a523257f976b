// SPDX-License-Identifier: Apache-2.0
// Losses of pairs of values: squared, absolute, binary cross-entropy.
#include "gable/ops/loss.hpp"
#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"
#include "norm.hpp"
#include "scratch.hpp"

namespace gable {

template <class F, class T>
static void kernel(const PairLossArgs<F, T>& a) {
  using C = Compute<T>;
  const bool weighted = a.weight.data != nullptr;
  const bool none = a.reduction == Reduction::none;
  const StridedLoop<4> loop({&a.x.layout, &a.target.layout,
                             weighted ? &a.weight.layout : &a.x.layout,
                             none ? &a.loss.layout : &a.x.layout});
  const auto [sx, st, sw, sl] = loop.row_strides();
  auto row_loss = [&, sx = sx, st = st, sw = sw](const auto& at) {
    return [=, x = a.x.data + at[0], t = a.target.data + at[1],
            w = weighted ? a.weight.data + at[2] : nullptr](int64_t i) {
      return F::fwd(convert<C>(x[i * sx]), convert<C>(t[i * st]), w != nullptr ? w[i * sw] : C(1));
    };
  };
  if (none) {
    loop.parallel(kElementwiseGrain, [&, sl = sl](const auto& at, int64_t n) {
      const auto loss = row_loss(at);
      for (int64_t i = 0; i < n; ++i) a.loss.data[at[3] + i * sl] = loss(i);
    });
    return;
  }
  constexpr int64_t chunk = 16384;  // fixed, so that the sum does not depend on threads
  const int64_t chunks = (a.x.numel() + chunk - 1) / chunk;
  const cpu::Scratch<double> partial(chunks);
  parallel_for(chunks, 2, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0;
      loop.visit(c * chunk, std::min(a.x.numel(), (c + 1) * chunk), [&](const auto& at, int64_t n) {
        const auto loss = row_loss(at);
        sum += cpu::long_sum<C>(n, loss);
      });
      partial[c] = sum;
    }
  });
  double total = 0;
  for (int64_t c = 0; c < chunks; ++c) total += partial[c];
  if (a.reduction == Reduction::mean && chunks > 0) total /= static_cast<double>(a.x.numel());
  *a.loss.data = static_cast<C>(total);
}

template <class F, class T>
static void kernel(const PairLossBackwardArgs<F, T>& a) {
  using C = Compute<T>;
  const bool weighted = a.weight.data != nullptr;
  auto run = [&](const TensorView<T>& out, auto derivative) {
    if (out.data == nullptr) return;
    const StridedLoop<5> loop({&out.layout, &a.x.layout, &a.target.layout, &a.dy.layout,
                               weighted ? &a.weight.layout : &a.x.layout});
    const auto steps = loop.row_strides();
    loop.parallel(kElementwiseGrain, [&](const auto& at, int64_t n) {
      for (int64_t i = 0; i < n; ++i) {
        const C dy = static_cast<C>(static_cast<double>(a.dy.data[at[3] + i * steps[3]]) * a.scale);
        const C w = weighted ? a.weight.data[at[4] + i * steps[4]] : C(1);
        out.data[at[0] + i * steps[0]] =
            convert<T>(dy * derivative(convert<C>(a.x.data[at[1] + i * steps[1]]),
                                       convert<C>(a.target.data[at[2] + i * steps[2]]), w));
      }
    });
  };
  run(a.dx, [](C x, C t, C w) { return F::dx(x, t, w); });
  run(a.dtarget, [](C x, C t, C w) { return F::dtarget(x, t, w); });
}

GABLE_CPU_KERNEL_FLOATS(MseLossArgs)
GABLE_CPU_KERNEL_FLOATS(MseLossBackwardArgs)
GABLE_CPU_KERNEL_FLOATS(L1LossArgs)
GABLE_CPU_KERNEL_FLOATS(L1LossBackwardArgs)
GABLE_CPU_KERNEL_FLOATS(BceLossArgs)
GABLE_CPU_KERNEL_FLOATS(BceLossBackwardArgs)

}  // namespace gable
