// SPDX-License-Identifier: Apache-2.0
// Gradients of layer norm and RMS norm; included by a file for each. Every block goes through a run
// of rows and keeps its part of dgamma and dbeta in registers, so that x and dy are read once and
// the partial sums are few; long and irregular rows are read several times.
#pragma once

#include "gable/ops/reduce.hpp"
#include "layer_norm.cuh"
#include "runtime/scratch.hpp"

// The partial sums are added up by the reduction kernels.
extern template void gable::cuda::run<gable::SumArgs<float>>(const gable::SumArgs<float>&,
                                                             const gable::Stream&);
extern template void gable::cuda::run<gable::SumArgs<double>>(const gable::SumArgs<double>&,
                                                              const gable::Stream&);

namespace gable {
namespace cuda {
namespace {

template <class T>
struct NormBackwardViews {
  T* dx;  // null: not wanted; so are the partial sums
  const T* dy;
  const T* x;
  const double* mean;  // null without Center
  const Compute<T>* rstd;
  const Compute<T>* gamma;
  Compute<T>* partial_gamma;  // (chunks, length)
  Compute<T>* partial_beta;
  int64_t dx_step;  // along a row
  int64_t dy_step;
  int64_t x_step;
  int64_t length;
  int64_t chunk;  // rows a block
};

constexpr int kBackwardThreads = kRowThreads;
constexpr int64_t kBackwardRows = 256;  // terms that a thread adds up in the compute type
constexpr int kAnyThreads = 512;
constexpr int kAffineThreads = 256;

// --- kernels; rows are x, dy, dx, rstd

template <class T, bool Center, int V, int E>
__global__ void __launch_bounds__(kBackwardThreads, sizeof(T) < 8 && E == 8 ? 2 : 1)
    norm_backward_rows_kernel(const NormBackwardViews<T> a, const StridedIndex<4> rows,
                              const int lanes) {
  using C = Compute<T>;
  using Piece = RowPiece<T, V, E>;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int group = static_cast<int>(threadIdx.x) / lanes;
  const int groups = static_cast<int>(blockDim.x) / lanes;
  const int64_t begin = int64_t{blockIdx.x} * a.chunk;
  const int64_t end = std::min(rows.count(), begin + a.chunk);
  C gamma[E];
#pragma unroll
  for (int p = 0; p < Piece::kPacks; ++p) {
    C pack[V];
    const int64_t i = Piece::element(p, lane, lanes);
    load_affine(pack, i < a.length ? a.gamma : nullptr, i, C(1));
#pragma unroll
    for (int v = 0; v < V; ++v) gamma[p * V + v] = pack[v];
  }
  C to_gamma[E] = {};
  C to_beta[E] = {};
  for (int64_t first = begin; first < end; first += groups) {
    const int64_t row = first + group;
    const bool active = row < end;
    const Offsets<4> at = active ? rows.offsets(row) : Offsets<4>{};
    const int64_t length = active ? a.length : 0;
    Piece x;
    Piece dy;
    x.load(a.x + at.at[0], a.x_step, length, lane, lanes, narrow<T>(C(0)));
    dy.load(a.dy + at.at[1], a.dy_step, length, lane, lanes, narrow<T>(C(0)));
    const Normalize<C> normalize(Center && active ? a.mean[at.at[3]] : 0.0,
                                 active ? a.rstd[at.at[3]] : C(0));
    C slopes = 0;
    C sums = 0;
#pragma unroll
    for (int e = 0; e < E; ++e) {
      const C d = widen(dy[e]);
      const C product = d * normalize(widen(x[e]));
      to_gamma[e] += product;
      to_beta[e] += d;
      slopes += product * gamma[e];
      sums += d * gamma[e];
    }
    if (a.dx == nullptr) continue;
    const TwoSums s = group_reduce(TwoSums{static_cast<double>(slopes), static_cast<double>(sums)},
                                   AddTwo{}, lanes);
    const auto count = static_cast<double>(a.length);
    const C slope = static_cast<C>(s.a / count);
    const C mean = Center ? static_cast<C>(s.b / count) : C(0);
#pragma unroll
    for (int e = 0; e < E; ++e)
      dy[e] = narrow<T>(normalize.rstd *
                        (widen(dy[e]) * gamma[e] - mean - normalize(widen(x[e])) * slope));
    dy.store(a.dx + at.at[2], a.dx_step, length, lane, lanes);
  }
  // One row of partial sums a block.
  __shared__ C shared[256 * E];
  auto write = [&](C* partial, const C(&values)[E]) {
    if (partial == nullptr) return;
    partial += int64_t{blockIdx.x} * a.length;
    if (groups > 1) __syncthreads();
#pragma unroll
    for (int e = 0; e < E; ++e) {
      const int64_t i = Piece::element(e / V, lane, lanes) + e % V;
      if (groups > 1)
        shared[group * lanes * E + i] = values[e];
      else if (i < a.length)
        partial[i] = values[e];
    }
    if (groups == 1) return;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
      double total = 0;
      for (int g = 0; g < groups; ++g) total += static_cast<double>(shared[g * lanes * E + i]);
      partial[i] = static_cast<C>(total);
    }
  };
  write(a.partial_gamma, to_gamma);
  write(a.partial_beta, to_beta);
}

/// dx of rows of any length and layout, a block each; inner holds the row-major position, x, dy
/// and dx.
template <class T, bool Center>
__global__ void __launch_bounds__(kAnyThreads)
    norm_backward_any_kernel(const NormBackwardViews<T> a, const StridedIndex<4> rows,
                             const StridedIndex<4> inner) {
  using C = Compute<T>;
  const Offsets<4> at = rows.offsets(blockIdx.x);
  const T* x = a.x + at.at[0];
  const T* dy = a.dy + at.at[1];
  const Normalize<C> normalize(Center ? a.mean[at.at[3]] : 0.0, a.rstd[at.at[3]]);
  auto gradient = [&](const Offsets<4>& o) {
    const C d = widen(dy[o.at[2]]);
    return a.gamma != nullptr ? d * a.gamma[o.at[0]] : d;
  };
  TwoSums s;
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < a.length; i += kAnyThreads) {
    const Offsets<4> o = inner.offsets(i);
    const C g = gradient(o);
    s.a += static_cast<double>(g * normalize(widen(x[o.at[1]])));
    s.b += static_cast<double>(g);
  }
  s = block_reduce(s, AddTwo{});
  const auto count = static_cast<double>(a.length);
  const C slope = static_cast<C>(s.a / count);
  const C mean = Center ? static_cast<C>(s.b / count) : C(0);
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < a.length; i += kAnyThreads) {
    const Offsets<4> o = inner.offsets(i);
    a.dx[at.at[2] + o.at[3]] =
        narrow<T>(normalize.rstd * (gradient(o) - mean - normalize(widen(x[o.at[1]])) * slope));
  }
}

/// Partial sums of the same: a thread an element of the rows, blockIdx.y the chunk.
template <class T, bool Center>
__global__ void __launch_bounds__(kAffineThreads)
    norm_affine_any_kernel(const NormBackwardViews<T> a, const StridedIndex<4> rows,
                           const StridedIndex<4> inner) {
  using C = Compute<T>;
  const int64_t i = int64_t{blockIdx.x} * kAffineThreads + threadIdx.x;
  if (i >= a.length) return;
  const Offsets<4> o = inner.offsets(i);
  const int64_t end = std::min(rows.count(), (int64_t{blockIdx.y} + 1) * a.chunk);
  TwoSums s;
#pragma unroll 2
  for (int64_t row = int64_t{blockIdx.y} * a.chunk; row < end; ++row) {
    const Offsets<4> at = rows.offsets(row);
    const Normalize<C> normalize(Center ? a.mean[at.at[3]] : 0.0, a.rstd[at.at[3]]);
    const C d = widen(a.dy[at.at[1] + o.at[2]]);
    s.a += static_cast<double>(d * normalize(widen(a.x[at.at[0] + o.at[1]])));
    s.b += static_cast<double>(d);
  }
  const int64_t to = int64_t{blockIdx.y} * a.length + o.at[0];
  if (a.partial_gamma != nullptr) a.partial_gamma[to] = static_cast<C>(s.a);
  if (a.partial_beta != nullptr) a.partial_beta[to] = static_cast<C>(s.b);
}

// --- launchers

template <class C>
void add_up(const Stream& stream, const TensorView<C>& out, const C* partial, int64_t chunks,
            int64_t length) {
  if (out.data == nullptr) return;
  run(SumArgs<C>{{out.data, Layout(Shape{1, length})},
                 {partial, Layout(Shape{chunks, length})},
                 {},
                 Sum{}},
      stream);
}

}  // namespace
}  // namespace cuda

template <class T, bool Center>
static void kernel(const RowNormBackwardArgs<T, Center>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  using C = Compute<T>;
  const int rank = args.inner_rank;
  const Layout& dx_layout = args.dx.data != nullptr ? args.dx.layout : args.x.layout;
  const Layout rows_x = rows_of(args.x.layout, rank);
  const Layout rows_dy = rows_of(args.dy.layout, rank);
  const Layout rows_dx = rows_of(dx_layout, rank);
  const Layout row_x = row_of(args.x.layout, rank);
  const Layout row_dy = row_of(args.dy.layout, rank);
  const Layout row_dx = row_of(dx_layout, rank);
  const Layout positions(row_x.shape());
  const StridedLoop<4> rows({&rows_x, &rows_dy, &rows_dx, &args.rstd.layout});
  const StridedLoop<4> inner({&positions, &row_x, &row_dy, &row_dx});
  const int64_t count = rows.numel();
  const int64_t length = inner.numel();
  constexpr int most_values = std::is_same_v<T, double> ? 8 : 16;
  const int values = length <= 8 * kBackwardThreads ? 8 : most_values;
  const bool regular = inner.rank() == 1 && length <= int64_t{values} * kBackwardThreads;
  const RowGroups groups(count, regular ? length : 1, values);
  const int64_t together = static_cast<int>(groups.threads) / groups.lanes;

  // How many blocks share the rows depends on the shape only.
  const int64_t fill = regular ? 256 * 1024 / static_cast<int64_t>(groups.threads) : 64;
  const int64_t step = regular ? together : 1;
  const int64_t wanted =
      std::max(fill, (count + kBackwardRows * step - 1) / (kBackwardRows * step));
  const int64_t most = std::clamp<int64_t>(wanted, 1, regular ? wanted : 65535);
  const int64_t chunk = std::max<int64_t>(1, ((count + most - 1) / most + step - 1) / step) * step;
  const int64_t chunks = (count + chunk - 1) / chunk;
  const Scratch<C> partial_gamma(args.dgamma.data != nullptr ? chunks * length : 0, stream);
  const Scratch<C> partial_beta(args.dbeta.data != nullptr ? chunks * length : 0, stream);
  const NormBackwardViews<T> views{args.dx.data,
                                   args.dy.data,
                                   args.x.data,
                                   args.mean.data,
                                   args.rstd.data,
                                   args.gamma.data,
                                   args.dgamma.data != nullptr ? partial_gamma.data() : nullptr,
                                   args.dbeta.data != nullptr ? partial_beta.data() : nullptr,
                                   inner.row_strides()[3],
                                   inner.row_strides()[2],
                                   inner.row_strides()[1],
                                   length,
                                   chunk};
  if (count > 0 && regular) {
    constexpr int width = kPackSize<T>;
    const bool packed = views.x_step == 1 && views.dy_step == 1 && views.dx_step == 1 &&
                        length % width == 0 &&
                        rows_start_packed(rows, 0, args.x.data, sizeof(T), width) &&
                        rows_start_packed(rows, 1, args.dy.data, sizeof(T), width) &&
                        rows_start_packed(rows, 2, args.dx.data, sizeof(T), width) &&
                        affine_packed(args.gamma.data);
    auto run = [&]<int V>() {
      const Grid grid{blocks_for(chunks, 1), groups.threads};
      if (values == 8)
        launch(stream, grid, norm_backward_rows_kernel<T, Center, V, 8>, views,
               StridedIndex<4>(rows), groups.lanes);
      else
        launch(stream, grid, norm_backward_rows_kernel<T, Center, V, most_values>, views,
               StridedIndex<4>(rows), groups.lanes);
    };
    if (packed)
      run.template operator()<width>();
    else
      run.template operator()<1>();
  } else if (count > 0) {
    if (args.dx.data != nullptr)
      launch(stream, {blocks_for(count, 1), kAnyThreads}, norm_backward_any_kernel<T, Center>,
             views, StridedIndex<4>(rows), StridedIndex<4>(inner));
    if (views.partial_gamma != nullptr || views.partial_beta != nullptr)
      launch(stream,
             {{blocks_for(length, kAffineThreads), static_cast<unsigned>(chunks)}, kAffineThreads},
             norm_affine_any_kernel<T, Center>, views, StridedIndex<4>(rows),
             StridedIndex<4>(inner));
  }
  add_up(stream, args.dgamma, views.partial_gamma, chunks, length);
  add_up(stream, args.dbeta, views.partial_beta, chunks, length);
}

}  // namespace gable
