// SPDX-License-Identifier: Apache-2.0
// The sum of squares that gradient clipping needs.
#include "gable/ops/optimizer.hpp"
#include "kernel.hpp"
#include "map_sum.cuh"

namespace gable {
namespace cuda {
struct SquareOf {
  template <class V>
  __device__ __forceinline__ void operator()(double& out, V x) const {
    const auto wide = static_cast<double>(x);
    out = wide * wide;
  }
};
}  // namespace cuda

template <class T>
static void kernel(const SquareSumArgs<T>& args, const Stream& stream) {
  const StridedLoop<2> loop({&args.x.layout, &args.x.layout});
  cuda::map_sum<double, TypeList<T>>(
      stream, loop,
      cuda::Addresses<2>{{nullptr, const_cast<void*>(static_cast<const void*>(args.x.data))}},
      cuda::SquareOf{}, 1.0, args.out.data);
}

}  // namespace gable

GABLE_CUDA_KERNEL(gable::SquareSumArgs<float>)
GABLE_CUDA_KERNEL(gable::SquareSumArgs<double>)
