// SPDX-License-Identifier: Apache-2.0
// Gradients of the losses of pairs of values.
#include "pair_loss.cuh"

namespace gable {
namespace cuda {
namespace {

template <class F, bool Target, class T>
void run_backward(const PairLossBackwardArgs<F, T>& args, const TensorView<T>& out,
                  const Stream& stream) {
  using C = Compute<T>;
  if (out.data == nullptr) return;
  const PairBackward<F, Target> f{args.scale};
  if constexpr (kWeighted<F>) {
    if (args.weight.data != nullptr) {
      const StridedLoop<5> loop(
          {&out.layout, &args.x.layout, &args.target.layout, &args.dy.layout, &args.weight.layout});
      elementwise<TypeList<T>, TypeList<T, T, C, C>>(
          stream, loop,
          Addresses<5>{{untyped(out.data), untyped(args.x.data), untyped(args.target.data),
                        untyped(args.dy.data), untyped(args.weight.data)}},
          f);
      return;
    }
  }
  const StridedLoop<4> loop({&out.layout, &args.x.layout, &args.target.layout, &args.dy.layout});
  elementwise<TypeList<T>, TypeList<T, T, C>>(
      stream, loop,
      Addresses<4>{{untyped(out.data), untyped(args.x.data), untyped(args.target.data),
                    untyped(args.dy.data)}},
      f);
}

}  // namespace
}  // namespace cuda

template <class F, class T>
static void kernel(const PairLossBackwardArgs<F, T>& args, const Stream& stream) {
  cuda::run_backward<F, false>(args, args.dx, stream);
  cuda::run_backward<F, true>(args, args.dtarget, stream);
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(MseLossBackwardArgs)
GABLE_CUDA_KERNEL_FLOATS(L1LossBackwardArgs)
GABLE_CUDA_KERNEL_FLOATS(BceLossBackwardArgs)
