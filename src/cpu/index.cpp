// SPDX-License-Identifier: Apache-2.0
// gather, scatter_add, index_select, index_add, one_hot. Additions are split over threads by
// target column only, so that their order is fixed.
#include "gable/ops/index.hpp"

#include "kernel.hpp"
#include "lines.hpp"

namespace gable {
namespace {

// x's strides on index's shape, without moving along dim.
Layout beside(const Layout& x, const Shape& shape, int dim) {
  Strides strides = x.strides();
  if (dim >= 0) strides[dim] = 0;
  return Layout(shape, strides, 0, "index");
}

}  // namespace

template <class T>
static void kernel(const GatherArgs<T>& a) {
  const Layout source = beside(a.x.layout, a.out.shape(), a.dim);
  const StridedLoop<3> loop({&a.out.layout, &a.index.layout, &source});
  const auto [so, si, sx] = loop.row_strides();
  const int64_t step = a.x.stride(a.dim);
  loop.parallel(kElementwiseGrain, [&, so = so, si = si, sx = sx](const auto& at, int64_t n) {
    T* out = a.out.data + at[0];
    const int64_t* index = a.index.data + at[1];
    const T* x = a.x.data + at[2];
    for (int64_t i = 0; i < n; ++i) out[i * so] = x[i * sx + index[i * si] * step];
  });
}
GABLE_CPU_KERNEL_ALL(GatherArgs)

template <class T>
static void kernel(const ScatterAddArgs<T>& a) {
  using C = Compute<T>;
  const Layout target = beside(a.out.layout, a.index.shape(), a.dim);
  const Layout source = beside(a.src.layout, a.index.shape(), -1);
  const cpu::Lines<3> lines({&a.index.layout, &source, &target}, a.dim);
  const int64_t step = a.out.stride(a.dim);
  lines.parallel([&](const auto& at, int64_t count) {
    for (int64_t i = 0; i < lines.length; ++i)
      for (int64_t j = 0; j < count; ++j) {
        const int64_t to = a.index.data[at[0] + i * lines.steps[0] + j * lines.neighbours[0]];
        const T from = a.src.data[at[1] + i * lines.steps[1] + j * lines.neighbours[1]];
        C& out = a.out.data[at[2] + to * step + j * lines.neighbours[2]];
        out = detail::wrap_add(out, convert<C>(from));
      }
  });
}
GABLE_CPU_KERNEL_NUMERIC(ScatterAddArgs)

template <class T>
static void kernel(const IndexSelectArgs<T>& a) {
  const Layout out = cpu::without_dim(a.out.layout, a.dim);
  const Layout x = cpu::without_dim(a.x.layout, a.dim);
  const StridedLoop<2> loop({&out, &x});
  const auto [so, sx] = loop.row_strides();
  const int64_t slice = loop.numel();
  if (slice == 0) return;
  const int64_t out_step = a.out.stride(a.dim);
  const int64_t x_step = a.x.stride(a.dim);
  parallel_for(a.index.numel() * slice, kElementwiseGrain,
               [&, so = so, sx = sx](int64_t begin, int64_t end) {
                 for (int64_t i = begin / slice; begin < end; ++i) {
                   const int64_t stop = std::min(end, (i + 1) * slice);
                   const int64_t row = a.index.data[i * a.index.stride(0)];
                   loop.visit(begin - i * slice, stop - i * slice, [&](const auto& at, int64_t n) {
                     T* to = a.out.data + at[0] + i * out_step;
                     const T* from = a.x.data + at[1] + row * x_step;
                     if (so == 1 && sx == 1) {
                       std::copy_n(from, n, to);
                     } else {
                       for (int64_t j = 0; j < n; ++j) to[j * so] = from[j * sx];
                     }
                   });
                   begin = stop;
                 }
               });
}
GABLE_CPU_KERNEL_ALL(IndexSelectArgs)

template <class T>
static void kernel(const IndexAddArgs<T>& a) {
  using C = Compute<T>;
  const Layout out = cpu::without_dim(a.out.layout, a.dim);
  const Layout src = cpu::without_dim(a.src.layout, a.dim);
  const StridedLoop<2> loop({&out, &src});
  const auto [so, ss] = loop.row_strides();
  const int64_t count = a.index.numel();
  const int64_t grain = std::max<int64_t>(16, kElementwiseGrain / std::max<int64_t>(1, count));
  parallel_for(loop.numel(), grain, [&, so = so, ss = ss](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = a.index.data[i * a.index.stride(0)];
      if (row == a.skipped) continue;
      loop.visit(begin, end, [&](const auto& at, int64_t n) {
        C* __restrict to = a.out.data + at[0] + row * a.out.stride(a.dim);
        const T* from = a.src.data + at[1] + i * a.src.stride(a.dim);
        if (so == 1 && ss == 1) {
          for (int64_t j = 0; j < n; ++j) to[j] += convert<C>(from[j]);
        } else {
          for (int64_t j = 0; j < n; ++j) to[j * so] += convert<C>(from[j * ss]);
        }
      });
    }
  });
}
GABLE_CPU_KERNEL_FLOATS(IndexAddArgs)

template <class T>
static void kernel(const OneHotArgs<T>& a) {
  const int rank = a.index.rank();
  const Layout first = cpu::without_dim(a.out.layout, rank);
  const StridedLoop<2> loop({&first, &a.index.layout});
  const auto [so, si] = loop.row_strides();
  const int64_t classes = a.out.size(rank);
  const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / classes);
  loop.parallel(grain, [&, so = so, si = si](const auto& at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      T* out = a.out.data + at[0] + i * so;
      std::fill_n(out, classes, T{});
      out[a.index.data[at[1] + i * si]] = convert<T>(1);
    }
  });
}
GABLE_CPU_KERNEL_ALL(OneHotArgs)

}  // namespace gable
