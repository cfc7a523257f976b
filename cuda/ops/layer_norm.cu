// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm. Rows of up to some ten thousand values are read once, into registers;
// longer and irregular ones three times.
#include "layer_norm.cuh"

namespace gable {
namespace cuda {
namespace {

template <class T>
struct NormViews {
  T* y;
  double* mean;  // null without Center
  Compute<T>* rstd;
  const T* x;
  const Compute<T>* gamma;
  const Compute<T>* beta;
  int64_t y_step;  // along a row
  int64_t x_step;
  int64_t length;
  double eps;
};

// --- kernels

template <class T, bool Center, int V, int E>
__global__ void __launch_bounds__(kRowThreads)
    norm_rows_kernel(const NormViews<T> a, const StridedIndex<3> rows, const int lanes) {
  using C = Compute<T>;
  const RowPlace place(lanes);
  const bool active = place.row < rows.count();
  const Offsets<3> at = active ? rows.offsets(place.row) : Offsets<3>{};
  const int64_t length = active ? a.length : 0;
  RowPiece<T, V, E> piece;
  piece.load(a.x + at.at[0], a.x_step, length, place.lane, lanes, narrow<T>(C(0)));
  C shift = 0;
  if constexpr (Center) {
    C sums[4] = {};
#pragma unroll
    for (int e = 0; e < E; ++e) sums[e % 4] += widen(piece[e]);
    const double sum =
        static_cast<double>(sums[0] + sums[1]) + static_cast<double>(sums[2] + sums[3]);
    shift = static_cast<C>(group_reduce(sum, Add{}, lanes) / static_cast<double>(a.length));
  }
  C first[4] = {};
  C second[4] = {};
#pragma unroll
  for (int e = 0; e < E; ++e) {
    const bool inside = piece.element(e / V, place.lane, lanes) < length;
    const C d = inside ? widen(piece[e]) - shift : C(0);
    first[e % 4] += d;
    second[e % 4] += d * d;
  }
  TwoSums s = {
      static_cast<double>(first[0] + first[1]) + static_cast<double>(first[2] + first[3]),
      static_cast<double>(second[0] + second[1]) + static_cast<double>(second[2] + second[3])};
  s = group_reduce(s, AddTwo{}, lanes);
  if (!active) return;
  double mean = 0;
  const auto normalize = normalize_by<Center>(s, shift, a.length, a.eps, mean);
  if (place.lane == 0) {
    a.rstd[at.at[2]] = normalize.rstd;
    if constexpr (Center) a.mean[at.at[2]] = mean;
  }
#pragma unroll
  for (int p = 0; p < E / V; ++p) {
    const int64_t i = piece.element(p, place.lane, lanes);
    if (i >= length) continue;
    C gamma[V];
    C beta[V];
    load_affine(gamma, a.gamma, i, C(1));
    load_affine(beta, a.beta, i, C(0));
#pragma unroll
    for (int v = 0; v < V; ++v) {
      C y = normalize(widen(piece[p * V + v]));
      if (a.gamma != nullptr) y *= gamma[v];
      if (a.beta != nullptr) y += beta[v];
      piece[p * V + v] = narrow<T>(y);
    }
  }
  piece.store(a.y + at.at[1], a.y_step, length, place.lane, lanes);
}

/// A block a row of any length and layout; inner holds the row-major position, x and y.
template <class T, bool Center>
__global__ void __launch_bounds__(512)
    norm_any_kernel(const NormViews<T> a, const StridedIndex<3> rows, const StridedIndex<3> inner) {
  using C = Compute<T>;
  const Offsets<3> at = rows.offsets(blockIdx.x);
  const T* x = a.x + at.at[0];
  C shift = 0;
  if constexpr (Center) {
    double sum = 0;
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < a.length; i += blockDim.x)
      sum += static_cast<double>(widen(x[inner.offsets(i).at[1]]));
    shift = static_cast<C>(block_reduce(sum, Add{}) / static_cast<double>(a.length));
  }
  TwoSums s;
#pragma unroll 4
  for (int64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
    const C d = widen(x[inner.offsets(i).at[1]]) - shift;
    s.a += static_cast<double>(d);
    s.b += static_cast<double>(d * d);
  }
  s = block_reduce(s, AddTwo{});
  double mean = 0;
  const auto normalize = normalize_by<Center>(s, shift, a.length, a.eps, mean);
  if (threadIdx.x == 0) {
    a.rstd[at.at[2]] = normalize.rstd;
    if constexpr (Center) a.mean[at.at[2]] = mean;
  }
#pragma unroll 2
  for (int64_t i = threadIdx.x; i < a.length; i += blockDim.x) {
    const Offsets<3> o = inner.offsets(i);
    C y = normalize(widen(x[o.at[1]]));
    if (a.gamma != nullptr) y *= a.gamma[o.at[0]];
    if (a.beta != nullptr) y += a.beta[o.at[0]];
    a.y[at.at[1] + o.at[2]] = narrow<T>(y);
  }
}

}  // namespace
}  // namespace cuda

template <class T, bool Center>
static void kernel(const RowNormArgs<T, Center>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  if (args.x.numel() == 0) return;
  const Layout rows_x = rows_of(args.x.layout, args.inner_rank);
  const Layout rows_y = rows_of(args.y.layout, args.inner_rank);
  const Layout row_x = row_of(args.x.layout, args.inner_rank);
  const Layout row_y = row_of(args.y.layout, args.inner_rank);
  const Layout positions(row_x.shape());
  const StridedLoop<3> rows({&rows_x, &rows_y, &args.rstd.layout});
  const StridedLoop<3> inner({&positions, &row_x, &row_y});
  const NormViews<T> views{
      args.y.data,     args.mean.data, args.rstd.data,         args.x.data,
      args.gamma.data, args.beta.data, inner.row_strides()[2], inner.row_strides()[1],
      inner.numel(),   args.eps};
  constexpr int width = kPackSize<T>;
  constexpr int most = std::min<int>(32, 128 / sizeof(T));
  auto run = [&]<int V, int E>() {
    const RowGroups groups(rows.numel(), views.length, E);
    launch(stream, {groups.blocks, groups.threads}, norm_rows_kernel<T, Center, V, E>, views,
           StridedIndex<3>(rows), groups.lanes);
  };
  const bool packed = views.x_step == 1 && views.y_step == 1 && views.length % width == 0 &&
                      rows_start_packed(rows, 0, args.x.data, sizeof(T), width) &&
                      rows_start_packed(rows, 1, args.y.data, sizeof(T), width) &&
                      affine_packed(args.gamma.data) && affine_packed(args.beta.data);
  if (inner.rank() > 1 || views.length > most * kRowThreads)
    launch(stream, {blocks_for(rows.numel(), 1), 512}, norm_any_kernel<T, Center>, views,
           StridedIndex<3>(rows), StridedIndex<3>(inner));
  else if (packed && views.length <= 8 * kWarp)
    run.template operator()<width, 8>();
  else if (packed)
    run.template operator()<width, most>();
  else if (views.length <= 8 * kWarp)
    run.template operator()<1, 8>();
  else
    run.template operator()<1, most>();
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(LayerNormArgs)
GABLE_CUDA_KERNEL_FLOATS(RmsNormArgs)
