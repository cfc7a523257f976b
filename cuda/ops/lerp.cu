// SPDX-License-Identifier: Apache-2.0
// Linear interpolation, with a weight an element or one for all.
#include "elementwise.cuh"
#include "gable/ops/where.hpp"

namespace gable {
namespace {

struct Lerp {
  template <class V>
  __device__ __forceinline__ void operator()(V& out, V a, V b, V weight) const {
    out = math::lerp(a, b, weight);
  }
};

}  // namespace

template <class T>
static void kernel(const LerpArgs<T>& args, const Stream& stream) {
  const StridedLoop<4> loop(
      {&args.out.layout, &args.a.layout, &args.b.layout, &args.weight.layout});
  cuda::elementwise<TypeList<T>, TypeList<T, T, T>>(
      stream, loop,
      cuda::Addresses<4>{{cuda::address(args.out), cuda::address(args.a), cuda::address(args.b),
                          cuda::address(args.weight)}},
      Lerp{});
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(LerpArgs)
GABLE_CUDA_KERNEL_FLOATS(LerpScalarArgs)
GABLE_CUDA_KERNEL_FLOATS(LerpScalarBackwardArgs)
