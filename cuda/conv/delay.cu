// SPDX-License-Identifier: Apache-2.0
// The wait on the stream.
#include "conv/delay.hpp"

#include <cstdint>

#include "runtime/launch.hpp"

namespace gable::cuda {

namespace {

__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void delay_kernel(unsigned microseconds) {
  const uint64_t end = nanoseconds() + uint64_t{microseconds} * 1000;
  while (nanoseconds() < end) __nanosleep(500);
}

}  // namespace

void delay(const Stream& stream, unsigned microseconds) {
  launch(stream, {1, 1}, delay_kernel, microseconds);
}

}  // namespace gable::cuda
