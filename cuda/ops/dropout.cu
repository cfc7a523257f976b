// SPDX-License-Identifier: Apache-2.0
// Dropout under a given mask.
#include "gable/ops/dropout.hpp"

#include "elementwise.cuh"

namespace gable {
namespace {

// A dropped NaN is 0.
template <class C>
struct Drop {
  C scale;
  __device__ __forceinline__ void operator()(C& out, C x, bool keep) const {
    out = keep ? x * scale : C(0);
  }
};

}  // namespace

template <class T>
static void kernel(const DropoutArgs<T>& args, const Stream& stream) {
  using C = Compute<T>;
  const StridedLoop<3> loop({&args.out.layout, &args.x.layout, &args.mask.layout});
  cuda::elementwise<TypeList<T>, TypeList<T, bool>>(
      stream, loop,
      cuda::Addresses<3>{
          {cuda::address(args.out), cuda::address(args.x), cuda::address(args.mask)}},
      Drop<C>{static_cast<C>(args.scale)});
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(DropoutArgs)
