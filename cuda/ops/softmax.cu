// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax and masked softmax along any dimension. Rows of up to some ten thousand
// values are read once, into registers; longer ones twice.
#include "gable/ops/softmax.hpp"

#include "kernel.hpp"
#include "softmax_lines.cuh"

namespace gable {
namespace cuda {
namespace {

template <class T>
struct SoftmaxViews {
  T* y;
  const T* x;
  const bool* mask;
  int64_t y_step;  // along a line
  int64_t x_step;
  int64_t mask_step;
  int64_t length;
  bool log;
};

// --- kernels

template <class T, int V, int E>
__global__ void __launch_bounds__(kRowThreads)
    softmax_rows_kernel(const SoftmaxViews<T> a, const StridedIndex<3> rows, const int lanes) {
  using C = Compute<T>;
  static_assert(E <= 32);
  const RowPlace place(lanes);
  const bool active = place.row < rows.count();
  const bool masked = a.mask != nullptr;
  const Offsets<3> at = active ? rows.offsets(place.row) : Offsets<3>{};
  const int64_t length = active ? a.length : 0;
  RowPiece<T, V, E> piece;
  piece.load(a.x + at.at[1], a.x_step, length, place.lane, lanes, narrow<T>(-infinity<C>()));
  C values[E];
#pragma unroll
  for (int e = 0; e < E; ++e) values[e] = widen(piece[e]);
  uint32_t hidden = 0;
  if (masked) {
#pragma unroll
    for (int e = 0; e < E; ++e) {
      const int64_t i = piece.element(e / V, place.lane, lanes) + e % V;
      if (i < length && !a.mask[at.at[2] + i * a.mask_step]) {
        hidden |= 1U << e;
        values[e] = -infinity<C>();
      }
    }
  }
  C top = values[0];
#pragma unroll
  for (int e = 1; e < E; ++e) top = Larger{}(top, values[e]);
  top = top == top ? top : -infinity<C>();  // NaN comes back through exp
  top = group_reduce(top, Larger{}, lanes);
  if (masked && top == -infinity<C>()) top = C(0);
  C sums[4] = {};
#pragma unroll
  for (int e = 0; e < E; ++e) {
    const C exponent = values[e] - top;
    const C power = exp_of<T>(exponent);
    sums[e % 4] += power;
    values[e] = a.log ? exponent : power;
  }
  double sum = static_cast<double>(sums[0] + sums[1]) + static_cast<double>(sums[2] + sums[3]);
  sum = group_reduce(sum, Add{}, lanes);
  if (masked && sum == 0) sum = 1;
  const C last = a.log ? math::log(static_cast<C>(sum)) : static_cast<C>(1 / sum);
#pragma unroll
  for (int e = 0; e < E; ++e) {
    const C y = a.log ? values[e] - last : values[e] * last;
    piece[e] = narrow<T>(((hidden >> e) & 1U) != 0 ? C(0) : y);
  }
  piece.store(a.y + at.at[0], a.y_step, length, place.lane, lanes);
}

/// Several rows side by side, or one long row: twice over x.
template <class T, int V>
__global__ void __launch_bounds__(kLineThreads)
    softmax_lines_kernel(const SoftmaxViews<T> a, const StridedIndex<3> lines,
                         const LineSplit split) {
  using C = Compute<T>;
  const LinePlace place(split);
  const bool active = place.line < lines.count();
  const bool masked = a.mask != nullptr;
  const Offsets<3> at = active ? lines.offsets(place.line) : Offsets<3>{};
  const int64_t length = active ? a.length : 0;
  const T* x = a.x + at.at[1];
  T* y = a.y + at.at[0];
  const bool* mask = masked ? a.mask + at.at[2] : nullptr;
  auto load = [&](int64_t i) {
    Pack<T, V> pack = *reinterpret_cast<const Pack<T, V>*>(x + (V > 1 ? i : i * a.x_step));
    if (masked) {
#pragma unroll
      for (int v = 0; v < V; ++v)
        if (!mask[(i + v) * a.mask_step]) pack.values[v] = narrow<T>(-infinity<C>());
    }
    return pack;
  };
  ExpSum<T> state;
  for (int64_t i = place.first * V; i < length; i += place.stride * V) state.add(load(i));
  state = line_reduce(
      state, [](const auto& p, const auto& q) { return p.with(q); }, split);
  if (masked && state.top == -infinity<C>()) state.top = C(0);
  if (masked && state.sum == 0) state.sum = 1;
  const C last = a.log ? math::log(static_cast<C>(state.sum)) : static_cast<C>(1 / state.sum);
  for (int64_t i = place.first * V; i < length; i += place.stride * V) {
    Pack<T, V> pack = load(i);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const C exponent = static_cast<C>(widen(pack.values[v])) - state.top;
      const bool hidden = masked && !mask[(i + v) * a.mask_step];
      pack.values[v] = narrow<T>(hidden  ? C(0)
                                 : a.log ? exponent - last
                                         : exp_of<T>(exponent) * last);
    }
    *reinterpret_cast<Pack<T, V>*>(y + (V > 1 ? i : i * a.y_step)) = pack;
  }
}

// --- launchers

template <class T, int V>
void softmax_rows(const Stream& stream, const SoftmaxViews<T>& a, const StridedLoop<3>& rows) {
  constexpr int most = std::min<int>(32, 128 / sizeof(T));
  auto run = [&]<int E>() {
    const RowGroups groups(rows.numel(), a.length, E);
    launch(stream, {groups.blocks, groups.threads}, softmax_rows_kernel<T, V, E>, a,
           StridedIndex<3>(rows), groups.lanes);
  };
  if (a.length <= 8 * kWarp)
    run.template operator()<8>();
  else if (a.length <= most * kRowThreads)
    run.template operator()<most>();
  else
    launch(stream, {blocks_for(rows.numel(), 1), kLineThreads}, softmax_lines_kernel<T, V>, a,
           StridedIndex<3>(rows), LineSplit{});
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const SoftmaxArgs<T>& args, const Stream& stream) {
  if (args.x.numel() == 0) return;
  const bool masked = args.mask.data != nullptr;
  const Layout& mask = masked ? args.mask.layout : args.x.layout;
  const auto rows = cuda::line_loop<3>({&args.y.layout, &args.x.layout, &mask}, args.dim);
  const cuda::SoftmaxViews<T> views{args.y.data,
                                    args.x.data,
                                    args.mask.data,
                                    args.y.stride(args.dim),
                                    args.x.stride(args.dim),
                                    mask.strides()[args.dim],
                                    args.x.size(args.dim),
                                    args.log};
  constexpr int width = cuda::kPackSize<T>;
  if (cuda::side_by_side(rows, views.y_step)) {
    const auto split = cuda::LineSplit::across(views.length);
    cuda::launch(stream, {cuda::blocks_for(rows.numel(), split.lines()), cuda::kLineThreads},
                 cuda::softmax_lines_kernel<T, 1>, views, cuda::StridedIndex<3>(rows), split);
  } else if (views.y_step == 1 && views.x_step == 1 && views.length % width == 0 &&
             cuda::rows_start_packed(rows, 0, args.y.data, sizeof(T), width) &&
             cuda::rows_start_packed(rows, 1, args.x.data, sizeof(T), width)) {
    cuda::softmax_rows<T, width>(stream, views, rows);
  } else {
    cuda::softmax_rows<T, 1>(stream, views, rows);
  }
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(SoftmaxArgs)
