// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and log_softmax.
#include "gable/ops/softmax.hpp"
#include "kernel.hpp"
#include "softmax_lines.cuh"

namespace gable {
namespace cuda {
namespace {

template <class T>
struct SoftmaxBackwardViews {
  T* dx;
  const T* dy;
  const T* y;
  int64_t dx_step;  // along a line
  int64_t dy_step;
  int64_t y_step;
  int64_t length;
  bool log;

  using C = Compute<T>;
  // Where the probability is 0, whatever dy is: no part in the sum, and no gradient.
  __device__ __forceinline__ bool never(C y) const { return y == (log ? -infinity<C>() : C(0)); }
  __device__ __forceinline__ C term(C dy, C y) const { return never(y) ? C(0) : log ? dy : y * dy; }
  __device__ __forceinline__ C gradient(C dy, C y, C sum) const {
    const C d = log ? dy - exp_of<T>(y) * sum : y * (dy - sum);
    return never(y) ? C(0) : d;
  }
};

// --- kernels

template <class T, int V, int E>
__global__ void __launch_bounds__(kRowThreads)
    softmax_backward_rows_kernel(const SoftmaxBackwardViews<T> a, const StridedIndex<3> rows,
                                 const int lanes) {
  using C = Compute<T>;
  const RowPlace place(lanes);
  const bool active = place.row < rows.count();
  const Offsets<3> at = active ? rows.offsets(place.row) : Offsets<3>{};
  const int64_t length = active ? a.length : 0;
  RowPiece<T, V, E> dy;
  RowPiece<T, V, E> y;
  dy.load(a.dy + at.at[1], a.dy_step, length, place.lane, lanes, narrow<T>(C(0)));
  y.load(a.y + at.at[2], a.y_step, length, place.lane, lanes, narrow<T>(C(0)));
  C sums[4] = {};
#pragma unroll
  for (int e = 0; e < E; ++e) sums[e % 4] += a.term(widen(dy[e]), widen(y[e]));
  double sum = static_cast<double>(sums[0] + sums[1]) + static_cast<double>(sums[2] + sums[3]);
  sum = group_reduce(sum, Add{}, lanes);
#pragma unroll
  for (int e = 0; e < E; ++e)
    dy[e] = narrow<T>(a.gradient(widen(dy[e]), widen(y[e]), static_cast<C>(sum)));
  dy.store(a.dx + at.at[0], a.dx_step, length, place.lane, lanes);
}

template <class T, int V>
__global__ void __launch_bounds__(kLineThreads)
    softmax_backward_lines_kernel(const SoftmaxBackwardViews<T> a, const StridedIndex<3> lines,
                                  const LineSplit split) {
  using C = Compute<T>;
  const LinePlace place(split);
  const bool active = place.line < lines.count();
  const Offsets<3> at = active ? lines.offsets(place.line) : Offsets<3>{};
  const int64_t length = active ? a.length : 0;
  T* dx = a.dx + at.at[0];
  const T* dy = a.dy + at.at[1];
  const T* y = a.y + at.at[2];
  auto load = [](const T* from, int64_t i, int64_t step) {
    return *reinterpret_cast<const Pack<T, V>*>(from + (V > 1 ? i : i * step));
  };
  double sum = 0;
  for (int64_t i = place.first * V; i < length; i += place.stride * V) {
    const Pack<T, V> g = load(dy, i, a.dy_step);
    const Pack<T, V> p = load(y, i, a.y_step);
    C part = 0;
#pragma unroll
    for (int v = 0; v < V; ++v) part += a.term(widen(g.values[v]), widen(p.values[v]));
    sum += static_cast<double>(part);
  }
  sum = line_reduce(sum, Add{}, split);
  for (int64_t i = place.first * V; i < length; i += place.stride * V) {
    Pack<T, V> g = load(dy, i, a.dy_step);
    const Pack<T, V> p = load(y, i, a.y_step);
#pragma unroll
    for (int v = 0; v < V; ++v)
      g.values[v] =
          narrow<T>(a.gradient(widen(g.values[v]), widen(p.values[v]), static_cast<C>(sum)));
    *reinterpret_cast<Pack<T, V>*>(dx + (V > 1 ? i : i * a.dx_step)) = g;
  }
}

// --- launchers

template <class T, int V>
void softmax_backward_rows(const Stream& stream, const SoftmaxBackwardViews<T>& a,
                           const StridedLoop<3>& rows) {
  constexpr int most = 64 / sizeof(T);
  auto run = [&]<int E>() {
    const RowGroups groups(rows.numel(), a.length, E);
    launch(stream, {groups.blocks, groups.threads}, softmax_backward_rows_kernel<T, V, E>, a,
           StridedIndex<3>(rows), groups.lanes);
  };
  if (a.length <= 8 * kWarp)
    run.template operator()<8>();
  else if (a.length <= most * kRowThreads)
    run.template operator()<most>();
  else
    launch(stream, {blocks_for(rows.numel(), 1), kLineThreads}, softmax_backward_lines_kernel<T, V>,
           a, StridedIndex<3>(rows), LineSplit{});
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const SoftmaxBackwardArgs<T>& args, const Stream& stream) {
  if (args.y.numel() == 0) return;
  const auto rows =
      cuda::line_loop<3>({&args.dx.layout, &args.dy.layout, &args.y.layout}, args.dim);
  const cuda::SoftmaxBackwardViews<T> views{args.dx.data,
                                            args.dy.data,
                                            args.y.data,
                                            args.dx.stride(args.dim),
                                            args.dy.stride(args.dim),
                                            args.y.stride(args.dim),
                                            args.y.size(args.dim),
                                            args.log};
  constexpr int width = cuda::kPackSize<T>;
  if (cuda::side_by_side(rows, views.dx_step)) {
    const auto split = cuda::LineSplit::across(views.length);
    cuda::launch(stream, {cuda::blocks_for(rows.numel(), split.lines()), cuda::kLineThreads},
                 cuda::softmax_backward_lines_kernel<T, 1>, views, cuda::StridedIndex<3>(rows),
                 split);
  } else if (views.dx_step == 1 && views.dy_step == 1 && views.y_step == 1 &&
             views.length % width == 0 &&
             cuda::rows_start_packed(rows, 0, args.dx.data, sizeof(T), width) &&
             cuda::rows_start_packed(rows, 1, args.dy.data, sizeof(T), width) &&
             cuda::rows_start_packed(rows, 2, args.y.data, sizeof(T), width)) {
    cuda::softmax_backward_rows<T, width>(stream, views, rows);
  } else {
    cuda::softmax_backward_rows<T, 1>(stream, views, rows);
  }
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(SoftmaxBackwardArgs)
