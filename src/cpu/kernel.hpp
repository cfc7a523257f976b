// SPDX-License-Identifier: Apache-2.0
// How a CPU kernel is defined: a function template kernel(const XxxArgs<T>&) in namespace gable,
// and one of the macros below to instantiate it for a list of dtypes.
#pragma once

#include "gable/tensor/backend.hpp"

namespace gable::cpu {

template <KernelArgs Args>
void run(const Args& args) {
  kernel(args);  // found by ADL where the .cpp file instantiates
}

}  // namespace gable::cpu

#define GABLE_CPU_KERNEL(...) template void gable::cpu::run<__VA_ARGS__>(const __VA_ARGS__&);

#define GABLE_CPU_KERNEL_FLOATS(Args)        \
  GABLE_CPU_KERNEL(gable::Args<float>)       \
  GABLE_CPU_KERNEL(gable::Args<double>)      \
  GABLE_CPU_KERNEL(gable::Args<gable::half>) \
  GABLE_CPU_KERNEL(gable::Args<gable::bfloat16>)
#define GABLE_CPU_KERNEL_NUMERIC(Args)   \
  GABLE_CPU_KERNEL_FLOATS(Args)          \
  GABLE_CPU_KERNEL(gable::Args<int32_t>) \
  GABLE_CPU_KERNEL(gable::Args<int64_t>) \
  GABLE_CPU_KERNEL(gable::Args<uint8_t>)
#define GABLE_CPU_KERNEL_ALL(Args) \
  GABLE_CPU_KERNEL_NUMERIC(Args)   \
  GABLE_CPU_KERNEL(gable::Args<bool>)
