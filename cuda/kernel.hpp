// SPDX-License-Identifier: Apache-2.0
// How a CUDA kernel is defined: a function template
//   template <class T> static void kernel(const XxxArgs<T>& args, const Stream& stream)
// in namespace gable, which launches through cuda::launch, and one of the macros below to
// instantiate it for a list of dtypes. The twin of src/cpu/kernel.hpp.
#pragma once

#include "gable/tensor/backend.hpp"
#include "runtime/context.hpp"

namespace gable::cuda {

template <KernelArgs Args>
void run(const Args& args, const Stream& stream) {
  const OpRange range(Args::name, stream.device);
  kernel(args, stream);  // found by ADL where the .cu file instantiates
}

}  // namespace gable::cuda

#define GABLE_CUDA_KERNEL(...) \
  template void gable::cuda::run<__VA_ARGS__>(const __VA_ARGS__&, const gable::Stream&);

#define GABLE_CUDA_KERNEL_FLOATS(Args)        \
  GABLE_CUDA_KERNEL(gable::Args<float>)       \
  GABLE_CUDA_KERNEL(gable::Args<double>)      \
  GABLE_CUDA_KERNEL(gable::Args<gable::half>) \
  GABLE_CUDA_KERNEL(gable::Args<gable::bfloat16>)
#define GABLE_CUDA_KERNEL_NUMERIC(Args)   \
  GABLE_CUDA_KERNEL_FLOATS(Args)          \
  GABLE_CUDA_KERNEL(gable::Args<int32_t>) \
  GABLE_CUDA_KERNEL(gable::Args<int64_t>) \
  GABLE_CUDA_KERNEL(gable::Args<uint8_t>)
#define GABLE_CUDA_KERNEL_ALL(Args) \
  GABLE_CUDA_KERNEL_NUMERIC(Args)   \
  GABLE_CUDA_KERNEL(gable::Args<bool>)
