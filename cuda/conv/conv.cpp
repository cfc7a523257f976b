// SPDX-License-Identifier: Apache-2.0
// The convolution kernels.
#include "conv/plan.hpp"
#include "kernel.hpp"

namespace gable {

template <class T>
static void kernel(const Conv2dArgs<T>& args, const Stream& stream) {
  cuda::run_conv(args, stream);
}
template <class T>
static void kernel(const Conv2dInputGradArgs<T>& args, const Stream& stream) {
  cuda::run_conv(args, stream);
}
template <class T>
static void kernel(const Conv2dWeightGradArgs<T>& args, const Stream& stream) {
  cuda::run_conv(args, stream);
}

GABLE_CONV_ARGS(GABLE_CUDA_KERNEL)

}  // namespace gable
