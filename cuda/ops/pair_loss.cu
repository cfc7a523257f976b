// SPDX-License-Identifier: Apache-2.0
// Losses of pairs of values: squared, absolute, binary cross-entropy.
#include "pair_loss.cuh"

#include "map_sum.cuh"

namespace gable {

template <class F, class T>
static void kernel(const PairLossArgs<F, T>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  using C = Compute<T>;
  const bool none = args.reduction == Reduction::none;
  const int64_t count = args.x.numel();
  const Layout& lead = none ? args.loss.layout : args.x.layout;
  auto run = [&]<int N, class Ins>(const StridedLoop<N>& loop, const Addresses<N>& addresses, Ins) {
    if (none)
      elementwise<TypeList<C>, Ins>(stream, loop, addresses, PairForward<F>{});
    else
      map_sum<C, Ins>(
          stream, loop, addresses, PairForward<F>{},
          args.reduction == Reduction::mean && count > 0 ? 1 / static_cast<double>(count) : 1.0,
          args.loss.data);
  };
  if constexpr (kWeighted<F>) {
    if (args.weight.data != nullptr) {
      run(StridedLoop<4>({&lead, &args.x.layout, &args.target.layout, &args.weight.layout}),
          Addresses<4>{{untyped(args.loss.data), untyped(args.x.data), untyped(args.target.data),
                        untyped(args.weight.data)}},
          TypeList<T, T, C>{});
      return;
    }
  }
  run(StridedLoop<3>({&lead, &args.x.layout, &args.target.layout}),
      Addresses<3>{{untyped(args.loss.data), untyped(args.x.data), untyped(args.target.data)}},
      TypeList<T, T>{});
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(MseLossArgs)
GABLE_CUDA_KERNEL_FLOATS(L1LossArgs)
GABLE_CUDA_KERNEL_FLOATS(BceLossArgs)
