// SPDX-License-Identifier: Apache-2.0
// Fill and ranges.
#include "device/elementwise.cuh"
#include "gable/tensor/kernels.hpp"
#include "kernel.hpp"

namespace gable {
namespace cuda {

template <class V>
struct Constant {
  V value;
  __device__ __forceinline__ void operator()(V& out) const { out = value; }
};

template <class T>
__global__ void range_kernel(T* out, int64_t n, double start, double step, int64_t int_start,
                             int64_t int_step) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if constexpr (std::is_integral_v<T>)  // wraps instead of overflowing past the last element
    out[i] = convert<T>(
        static_cast<int64_t>(static_cast<uint64_t>(int_start) +
                             static_cast<uint64_t>(i) * static_cast<uint64_t>(int_step)));
  else  // a multiplication and an addition, each rounded, as on the CPU
    out[i] = convert<T>(__dadd_rn(start, __dmul_rn(static_cast<double>(i), step)));
}

}  // namespace cuda

template <class T>
static void kernel(const FillArgs<T>& args, const Stream& stream) {
  const StridedLoop<1> loop({&args.out.layout});
  cuda::elementwise<TypeList<T>, TypeList<>>(
      stream, loop, cuda::Addresses<1>{{args.out.data}},
      cuda::Constant<Compute<T>>{convert<Compute<T>>(args.value)});
}
GABLE_CUDA_KERNEL_ALL(FillArgs)

template <class T>
static void kernel(const RangeArgs<T>& args, const Stream& stream) {
  constexpr int kThreads = 256;
  const int64_t n = args.out.numel();
  cuda::launch(stream, {cuda::blocks_for(n, kThreads), kThreads}, cuda::range_kernel<T>,
               args.out.data, n, args.start, args.step, args.int_start, args.int_step);
}
GABLE_CUDA_KERNEL_ALL(RangeArgs)

}  // namespace gable
