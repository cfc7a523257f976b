// SPDX-License-Identifier: Apache-2.0
// Philox draws, the same bits as on the CPU. Built with -fmad=false.
#include "gable/tensor/random_draw.hpp"
#include "kernel.hpp"
#include "runtime/launch.hpp"

namespace gable {
namespace cuda {

// One counter a thread.
template <class T>
__global__ void random_kernel(const RandomArgs<T> args, T* out, int64_t n) {
  const int64_t block = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (block * 4 >= n) return;
  const auto bits = philox(args.seed, args.offset + static_cast<uint64_t>(block));
  std::array<float, 4> normal = {};
  if (args.distribution == Distribution::normal) normal = detail::normals(bits);
#pragma unroll
  for (int lane = 0; lane < 4; ++lane)
    if (block * 4 + lane < n) out[block * 4 + lane] = draw_element(args, bits[lane], normal[lane]);
}

}  // namespace cuda

template <class T>
static void kernel(const RandomArgs<T>& args, const Stream& stream) {
  constexpr int kThreads = 256;
  const int64_t n = args.out.numel();
  cuda::launch(stream, {cuda::blocks_for((n + 3) / 4, kThreads), kThreads}, cuda::random_kernel<T>,
               args, args.out.data, n);
}
GABLE_CUDA_KERNEL_ALL(RandomArgs)

}  // namespace gable
