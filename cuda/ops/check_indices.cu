// SPDX-License-Identifier: Apache-2.0
// Range check of indices: a bad one is recorded on the device and thrown at the next
// synchronisation.
#include "gable/ops/check_indices.hpp"

#include <cstdint>

#include "device/strided.cuh"
#include "kernel.hpp"
#include "runtime/fault.hpp"
#include "runtime/launch.hpp"

namespace gable {
namespace {

constexpr int kThreads = 256;
constexpr int kUnroll = 4;  // indices a thread

struct Range {
  int64_t bound;
  int64_t ignored;
  bool has_ignored;
};

// --- kernels

// Operand 0 is the indices, operand 1 their row-major numbers: a dense layout, never read.
__global__ void __launch_bounds__(kThreads)
    check_kernel(const int64_t* indices, const cuda::StridedIndex<2> at, const Range range,
                 const char* op, cuda::IndexFault* fault) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kUnroll) + threadIdx.x;
  cuda::Offsets<2> o[kUnroll];
  int64_t value[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int64_t position = first + u * kThreads;
    value[u] = 0;
    if (position >= at.count()) continue;
    o[u] = at.offsets(position);
    value[u] = indices[o[u].at[0]];
  }
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    if (first + u * kThreads >= at.count()) continue;
    const bool good = (value[u] >= 0 && value[u] < range.bound) ||
                      (range.has_ignored && value[u] == range.ignored);
    if (!good) cuda::record_fault(fault, op, value[u], range.bound, o[u].at[1]);
  }
}

}  // namespace

// --- launchers

static void kernel(const CheckIndicesArgs& args, const Stream& stream) {
  const Layout row_major(args.indices.shape());
  const StridedLoop<2> loop({&args.indices.layout, &row_major});
  if (loop.numel() == 0) return;
  const Range range{args.bound, args.ignored.value_or(0), args.ignored.has_value()};
  cuda::launch(stream, {cuda::blocks_for(loop.numel(), kThreads * kUnroll), kThreads}, check_kernel,
               args.indices.data, cuda::StridedIndex<2>(loop), range, args.op.op,
               cuda::index_fault(stream.device));
}

}  // namespace gable

GABLE_CUDA_KERNEL(gable::CheckIndicesArgs)
