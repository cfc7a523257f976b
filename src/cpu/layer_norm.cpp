// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm: one row at a time, read into a buffer of the compute type unless it is
// that already, so that strided rows and 16-bit rows cost one conversion.
#include "gable/ops/layer_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"
#include "norm.hpp"

namespace gable {
namespace {

// The leading (rows) or trailing (elements of a row) dimensions of a layout, at offset 0.
Layout part(const Layout& layout, int begin, int end) {
  Shape shape;
  Strides strides;
  for (int d = begin; d < end; ++d) {
    shape.push_back(layout.shape()[d]);
    strides.push_back(layout.strides()[d]);
  }
  return Layout(shape, strides, 0);
}

// Elements of one row in row-major order, as the compute type.
template <class T>
class Row {
 public:
  using C = Compute<T>;
  Row(const Layout& layout, int inner_rank)
      : inner_(part(layout, layout.rank() - inner_rank, layout.rank())),
        dense_(inner_.shape()),
        loop_({&inner_, &dense_}),
        contiguous_(inner_.is_contiguous()) {}
  [[nodiscard]] int64_t size() const { return inner_.numel(); }

  // The row at `at`, in place where possible, else gathered into `buffer` (size() values).
  const C* read(const T* at, C* buffer) const {
    if constexpr (std::is_same_v<T, C>) {
      if (contiguous_) return at;
    }
    visit([&](int64_t from, int64_t to, int64_t n, int64_t from_step, int64_t to_step) {
      if (from_step == 1 && to_step == 1)
        for (int64_t i = 0; i < n; ++i) buffer[to + i] = convert<C>(at[from + i]);
      else
        for (int64_t i = 0; i < n; ++i)
          buffer[to + i * to_step] = convert<C>(at[from + i * from_step]);
    });
    return buffer;
  }
  // Where to compute a row that goes to `at`: `at` itself or `buffer`; then write().
  C* target(T* at, C* buffer) const {
    if constexpr (std::is_same_v<T, C>) {
      if (contiguous_) return at;
    }
    return buffer;
  }
  void write(T* at, const C* row) const {
    if constexpr (std::is_same_v<T, C>) {
      if (at == row) return;
    }
    visit([&](int64_t to, int64_t from, int64_t n, int64_t to_step, int64_t from_step) {
      if (to_step == 1 && from_step == 1)
        for (int64_t i = 0; i < n; ++i) at[to + i] = convert<T>(row[from + i]);
      else
        for (int64_t i = 0; i < n; ++i)
          at[to + i * to_step] = convert<T>(row[from + i * from_step]);
    });
  }

 private:
  template <class F>
  void visit(F&& f) const {
    const auto [in, dense] = loop_.row_strides();
    loop_.visit(0, size(), [&, in = in, dense = dense](const auto& at, int64_t n) {
      f(at[0], at[1], n, in, dense);
    });
  }
  Layout inner_;
  Layout dense_;
  StridedLoop<2> loop_;
  bool contiguous_;
};

// Rows are split into chunks that depend on the shape only.
int64_t chunks_of(int64_t rows, int64_t size) {
  return std::clamp<int64_t>(rows * size / 16384, 1,
                             std::min<int64_t>(64, std::max<int64_t>(rows, 1)));
}

// Calls f(offsets) for each of rows [begin, end) of the loop.
template <int N, class F>
void for_rows(const StridedLoop<N>& loop, int64_t begin, int64_t end, F&& f) {
  loop.visit(begin, end, [&](auto at, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      f(at);
      for (size_t k = 0; k < N; ++k) at[k] += loop.row_strides()[k];
    }
  });
}

// Mean (0 unless Center) and mean squared deviation from it.
template <bool Center, class C>
cpu::Moments row_moments(const C* x, int64_t n) {
  if constexpr (Center) {
    cpu::Moments m;
    for (int64_t begin = 0; begin < n; begin += cpu::kSumBlock)
      m.add(cpu::block_moments(x + begin, std::min(n - begin, cpu::kSumBlock), 1));
    return m;
  } else {
    return {static_cast<double>(n), 0.0,
            cpu::long_sum<C>(n, [x](int64_t i) { return x[i] * x[i]; })};
  }
}

// xhat = ((x - high) - low) * rstd, where high + low is the mean in twice the precision.
template <class C>
struct Normalize {
  C high;
  C low;
  C rstd;
  Normalize(double mean, C r)
      : high(static_cast<C>(mean)),
        low(static_cast<C>(mean - static_cast<double>(high))),
        rstd(r) {}
  C operator()(C x) const { return ((x - high) - low) * rstd; }
};

}  // namespace

template <class T, bool Center>
static void kernel(const RowNormArgs<T, Center>& a) {
  using C = Compute<T>;
  const int outer = a.x.rank() - a.inner_rank;
  const Row<T> row_x(a.x.layout, a.inner_rank);
  const Row<T> row_y(a.y.layout, a.inner_rank);
  const int64_t size = row_x.size();
  const Layout rows_x = part(a.x.layout, 0, outer);
  const Layout rows_y = part(a.y.layout, 0, outer);
  const StridedLoop<3> rows({&rows_x, &rows_y, &a.rstd.layout});
  const int64_t grain = std::max<int64_t>(1, 16384 / size);
  parallel_for(rows.numel(), grain, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer(static_cast<size_t>(2 * size));
    for_rows(rows, begin, end, [&](const auto& at) {
      const C* x = row_x.read(a.x.data + at[0], buffer.data());
      const cpu::Moments m = row_moments<Center>(x, size);
      const auto rstd = static_cast<C>(1 / std::sqrt(m.m2 / m.n + a.eps));
      a.rstd.data[at[2]] = rstd;
      if constexpr (Center) a.mean.data[at[2]] = m.mean;
      const Normalize<C> normalize(m.mean, rstd);
      C* __restrict y = row_y.target(a.y.data + at[1], buffer.data() + size);
      const C* gamma = a.gamma.data;
      const C* beta = a.beta.data;
      if (gamma != nullptr && beta != nullptr)
        for (int64_t i = 0; i < size; ++i) y[i] = normalize(x[i]) * gamma[i] + beta[i];
      else if (gamma != nullptr)
        for (int64_t i = 0; i < size; ++i) y[i] = normalize(x[i]) * gamma[i];
      else
        for (int64_t i = 0; i < size; ++i) y[i] = normalize(x[i]);
      row_y.write(a.y.data + at[1], y);
    });
  });
}
GABLE_CPU_KERNEL_FLOATS(LayerNormArgs)
GABLE_CPU_KERNEL_FLOATS(RmsNormArgs)

namespace {

// dx of one row, and its terms of dgamma and dbeta (either may be null).
template <bool Center, class C>
void row_backward(int64_t n, const C* dy, const C* x, const Normalize<C>& normalize, const C* gamma,
                  C* __restrict g, C* __restrict dx, double* __restrict dgamma,
                  double* __restrict dbeta) {
  if (dgamma != nullptr)
    for (int64_t i = 0; i < n; ++i) dgamma[i] += static_cast<double>(dy[i] * normalize(x[i]));
  if (dbeta != nullptr)
    for (int64_t i = 0; i < n; ++i) dbeta[i] += static_cast<double>(dy[i]);
  if (dx == nullptr) return;
  if (gamma != nullptr)
    for (int64_t i = 0; i < n; ++i) g[i] = dy[i] * gamma[i];
  else
    std::copy_n(dy, n, g);
  const auto count = static_cast<double>(n);
  const C slope = static_cast<C>(
      cpu::long_sum<C>(n, [&](int64_t i) { return g[i] * normalize(x[i]); }) / count);
  C mean = 0;
  if constexpr (Center)
    mean = static_cast<C>(cpu::long_sum<C>(n, [&](int64_t i) { return g[i]; }) / count);
  for (int64_t i = 0; i < n; ++i) dx[i] = normalize.rstd * (g[i] - mean - normalize(x[i]) * slope);
}

}  // namespace

template <class T, bool Center>
static void kernel(const RowNormBackwardArgs<T, Center>& a) {
  using C = Compute<T>;
  const int outer = a.x.rank() - a.inner_rank;
  const bool wants_dx = a.dx.data != nullptr;
  const Layout& dx_layout = wants_dx ? a.dx.layout : a.x.layout;
  const Row<T> row_x(a.x.layout, a.inner_rank);
  const Row<T> row_dy(a.dy.layout, a.inner_rank);
  const Row<T> row_dx(dx_layout, a.inner_rank);
  const int64_t size = row_x.size();
  const Layout rows_x = part(a.x.layout, 0, outer);
  const Layout rows_dy = part(a.dy.layout, 0, outer);
  const Layout rows_dx = part(dx_layout, 0, outer);
  const StridedLoop<4> rows({&rows_x, &rows_dy, &rows_dx, &a.rstd.layout});
  const int64_t chunks = chunks_of(rows.numel(), size);
  const auto cells = static_cast<size_t>(chunks * size);
  std::vector<double> dgamma(a.dgamma.data != nullptr ? cells : 0);
  std::vector<double> dbeta(a.dbeta.data != nullptr ? cells : 0);
  parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
    std::vector<C> buffer(static_cast<size_t>(4 * size));
    for (int64_t chunk = first; chunk < last; ++chunk) {
      double* to_gamma = dgamma.empty() ? nullptr : dgamma.data() + chunk * size;
      double* to_beta = dbeta.empty() ? nullptr : dbeta.data() + chunk * size;
      for_rows(rows, rows.numel() * chunk / chunks, rows.numel() * (chunk + 1) / chunks,
               [&](const auto& at) {
                 const C* x = row_x.read(a.x.data + at[0], buffer.data());
                 const C* dy = row_dy.read(a.dy.data + at[1], buffer.data() + size);
                 T* out = wants_dx ? a.dx.data + at[2] : nullptr;
                 C* dx = wants_dx ? row_dx.target(out, buffer.data() + 2 * size) : nullptr;
                 const Normalize<C> normalize(Center ? a.mean.data[at[3]] : 0.0,
                                              a.rstd.data[at[3]]);
                 row_backward<Center>(size, dy, x, normalize, a.gamma.data,
                                      buffer.data() + 3 * size, dx, to_gamma, to_beta);
                 if (wants_dx) row_dx.write(out, dx);
               });
    }
  });
  auto combine = [&](const std::vector<double>& partial, C* out) {
    if (partial.empty()) return;
    parallel_for(size, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        double total = 0;
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          total += partial[static_cast<size_t>(chunk * size + i)];
        out[i] = static_cast<C>(total);
      }
    });
  };
  combine(dgamma, a.dgamma.data);
  combine(dbeta, a.dbeta.data);
}
GABLE_CPU_KERNEL_FLOATS(LayerNormBackwardArgs)
GABLE_CPU_KERNEL_FLOATS(RmsNormBackwardArgs)

}  // namespace gable
