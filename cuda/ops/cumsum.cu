// SPDX-License-Identifier: Apache-2.0
// Running sums along a dimension. Long lines are cut into parts of a fixed length: their sums, the
// running sums of these, then each part from where the earlier ones end. (CUB's scan of one pass
// adds floats in an order that differs from run to run.)
#include <algorithm>
#include <bit>
#include <cstdint>

#include "device/numeric.cuh"
#include "device/reduce.cuh"
#include "device/rows.cuh"
#include "device/strided.cuh"
#include "gable/ops/softmax.hpp"
#include "kernel.hpp"
#include "runtime/scratch.hpp"
#include "softmax_lines.cuh"

namespace gable {
namespace cuda {
namespace {

constexpr int kScanThreads = 256;

template <class T>
struct CumsumViews {
  using Out = SumResult<T>;
  using State = gable::detail::WideState<T>;
  Out* y;
  const T* x;
  int64_t y_step;  // along a line
  int64_t x_step;
  int64_t length;
  bool reverse;
  int64_t parts;  // of a line, `chunk` long
  int64_t chunk;
  State* partial;  // [line][part]: what comes before; null with one part
  bool sums_only;  // instead, writes the parts' sums there

  /// Element at place i of the running sum.
  __device__ __forceinline__ int64_t element(int64_t i) const {
    return reverse ? length - 1 - i : i;
  }
  __device__ __forceinline__ static State wide(T value) {
    return static_cast<State>(static_cast<Compute<T>>(widen(value)));
  }
  __device__ __forceinline__ static Out result(State sum) {
    return narrow<Out>(static_cast<Compute<Out>>(sum));
  }
};

// --- kernels

/// The sum of all earlier threads' values, and `total` of all. At most kScanThreads threads.
template <class S>
__device__ __forceinline__ S block_scan(S value, S& total) {
  __shared__ S warps[kScanThreads / kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  S inclusive = value;
#pragma unroll
  for (int d = 1; d < kWarp; d *= 2) {
    const S before = __shfl_up_sync(0xffffffffU, inclusive, static_cast<unsigned>(d));
    if (lane >= d) inclusive = gable::detail::wrap_add(inclusive, before);
  }
  // Not inclusive - value, which would round.
  const S shifted = __shfl_up_sync(0xffffffffU, inclusive, 1U);
  S exclusive = lane == 0 ? S{} : shifted;
  __syncthreads();  // an earlier call may still be reading
  if (lane == kWarp - 1) warps[warp] = inclusive;
  __syncthreads();
  S before = {};
  total = {};
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) {
    if (w == warp) before = total;
    total = gable::detail::wrap_add(total, warps[w]);
  }
  return gable::detail::wrap_add(before, exclusive);
}

/// A block a part of a line; a thread takes I neighbours at once, in packs if Packed.
template <class T, int I, bool Packed>
__global__ void __launch_bounds__(kScanThreads)
    cumsum_along_kernel(const CumsumViews<T> a, const StridedIndex<2> lines) {
  using State = typename CumsumViews<T>::State;
  using Out = SumResult<T>;
  const int64_t line = a.parts == 1 ? int64_t{blockIdx.x} : int64_t{blockIdx.x} / a.parts;
  const int64_t part = int64_t{blockIdx.x} - line * a.parts;
  const Offsets<2> at = lines.offsets(line);
  const T* x = a.x + at.at[1];
  Out* y = a.y + at.at[0];
  const int64_t end = std::min(a.length, (part + 1) * a.chunk);
  State carry = {};
  if (a.partial != nullptr && !a.sums_only) carry = a.partial[blockIdx.x];
  for (int64_t tile = part * a.chunk; tile < end; tile += int64_t{blockDim.x} * I) {
    const int64_t i = tile + int64_t{threadIdx.x} * I;
    State sums[I] = {};
    if (Packed) {
      if (i < end) {
        const auto pack =
            *reinterpret_cast<const Pack<T, I>*>(x + (a.reverse ? a.length - I - i : i));
#pragma unroll
        for (int v = 0; v < I; ++v) sums[v] = a.wide(pack.values[a.reverse ? I - 1 - v : v]);
      }
    } else {
#pragma unroll
      for (int v = 0; v < I; ++v)
        if (i + v < end) sums[v] = a.wide(x[a.element(i + v) * a.x_step]);
    }
#pragma unroll
    for (int v = 1; v < I; ++v) sums[v] = gable::detail::wrap_add(sums[v - 1], sums[v]);
    State total;
    const State before = gable::detail::wrap_add(carry, block_scan(sums[I - 1], total));
    carry = gable::detail::wrap_add(carry, total);
    if (a.sums_only) continue;
    if (Packed) {
      if (i >= end) continue;
      constexpr int width = std::min(I, kPackSize<Out>);
      Out* to = y + (a.reverse ? a.length - I - i : i);
#pragma unroll
      for (int p = 0; p < I / width; ++p) {
        Pack<Out, width> pack;
#pragma unroll
        for (int v = 0; v < width; ++v) {
          const int from = a.reverse ? I - 1 - (p * width + v) : p * width + v;
          State value = {};
#pragma unroll
          for (int k = 0; k < I; ++k) value = k == from ? sums[k] : value;  // stays in registers
          pack.values[v] = a.result(gable::detail::wrap_add(before, value));
        }
        *reinterpret_cast<Pack<Out, width>*>(to + p * width) = pack;
      }
    } else {
#pragma unroll
      for (int v = 0; v < I; ++v)
        if (i + v < end)
          y[a.element(i + v) * a.y_step] = a.result(gable::detail::wrap_add(before, sums[v]));
    }
  }
  if (a.sums_only && threadIdx.x == 0) a.partial[blockIdx.x] = carry;
}

/// A thread a part of a line; neighbouring threads take neighbouring lines. blockIdx.y: the part.
template <class T>
__global__ void __launch_bounds__(kScanThreads)
    cumsum_across_kernel(const CumsumViews<T> a, const StridedIndex<2> lines) {
  using State = typename CumsumViews<T>::State;
  using Out = SumResult<T>;
  constexpr int unroll = 8;
  const int64_t line = int64_t{blockIdx.x} * kScanThreads + threadIdx.x;
  if (line >= lines.count()) return;
  const int64_t part = blockIdx.y;
  const Offsets<2> at = lines.offsets(line);
  const T* x = a.x + at.at[1];
  Out* y = a.y + at.at[0];
  State sum = {};
  if (a.partial != nullptr && !a.sums_only) sum = a.partial[line * a.parts + part];
  const int64_t end = std::min(a.length, (part + 1) * a.chunk);
#pragma unroll 1
  for (int64_t i = part * a.chunk; i < end; i += unroll) {
    State values[unroll];
#pragma unroll
    for (int u = 0; u < unroll; ++u)
      values[u] = i + u < end ? a.wide(x[a.element(i + u) * a.x_step]) : State{};
#pragma unroll
    for (int u = 0; u < unroll; ++u) {
      sum = gable::detail::wrap_add(sum, values[u]);
      if (!a.sums_only && i + u < end) y[a.element(i + u) * a.y_step] = a.result(sum);
    }
  }
  if (a.sums_only) a.partial[line * a.parts + part] = sum;
}

/// A block a line: its parts' sums become the sums of all earlier parts.
template <class S>
__global__ void __launch_bounds__(kScanThreads) scan_parts_kernel(S* partial, const int64_t parts) {
  S* line = partial + int64_t{blockIdx.x} * parts;
  S carry = {};
  for (int64_t tile = 0; tile < parts; tile += kScanThreads) {
    const int64_t i = tile + threadIdx.x;
    const S value = i < parts ? line[i] : S{};
    S total;
    const S before = gable::detail::wrap_add(carry, block_scan(value, total));
    if (i < parts) line[i] = before;
    carry = gable::detail::wrap_add(carry, total);
  }
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const CumsumArgs<T>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  using State = typename CumsumViews<T>::State;
  if (args.x.numel() == 0) return;
  const auto lines = line_loop<2>({&args.y.layout, &args.x.layout}, args.dim);
  const int64_t count = lines.numel();
  CumsumViews<T> views{args.y.data,
                       args.x.data,
                       args.y.stride(args.dim),
                       args.x.stride(args.dim),
                       args.x.size(args.dim),
                       args.reverse,
                       1,
                       0,
                       nullptr,
                       false};
  constexpr int width = std::min(8, kPackSize<T>);
  constexpr int64_t tile = kScanThreads * int64_t{width};
  // Short lines take a thread each, as lines side by side do.
  const bool across = (count > 1 && views.length <= 64) || side_by_side(lines, views.y_step);
  auto cut = [&](int64_t most, int64_t unit) {
    const int64_t units = (views.length + unit - 1) / unit;
    const int64_t parts = std::clamp<int64_t>(most, 1, units);
    views.chunk = (units + parts - 1) / parts * unit;
    views.parts = (views.length + views.chunk - 1) / views.chunk;
  };
  if (across)
    cut(std::min<int64_t>(1024, 128 * 1024 / count), 64);
  else
    cut(2048 / count, 4 * tile);
  const Scratch<State> partial(views.parts > 1 ? count * views.parts : 0, stream);
  if (views.parts > 1) views.partial = partial.data();

  const bool packed = views.y_step == 1 && views.x_step == 1 && views.length % width == 0 &&
                      rows_start_packed(lines, 0, args.y.data, sizeof(SumResult<T>),
                                        std::min(width, kPackSize<SumResult<T>>)) &&
                      rows_start_packed(lines, 1, args.x.data, sizeof(T), width);
  auto pass = [&] {
    const StridedIndex<2> index(lines);
    if (across) {
      launch(stream,
             {{blocks_for(count, kScanThreads), static_cast<unsigned>(views.parts)}, kScanThreads},
             cumsum_across_kernel<T>, views, index);
      return;
    }
    const auto needed = static_cast<uint64_t>((views.length + 3) / 4);
    const auto threads =
        static_cast<unsigned>(std::clamp<uint64_t>(std::bit_ceil(needed), kWarp, kScanThreads));
    const unsigned blocks = blocks_for(count * views.parts, 1);
    if (packed)
      launch(stream, {blocks, threads}, cumsum_along_kernel<T, width, true>, views, index);
    else
      launch(stream, {blocks, threads}, cumsum_along_kernel<T, 4, false>, views, index);
  };
  if (views.parts > 1) {
    views.sums_only = true;
    pass();
    launch(stream, {blocks_for(count, 1), kScanThreads}, scan_parts_kernel<State>, partial.data(),
           views.parts);
    views.sums_only = false;
  }
  pass();
}

}  // namespace gable

GABLE_CUDA_KERNEL_ALL(CumsumArgs)
