// SPDX-License-Identifier: Apache-2.0
// sort, argsort, topk along one dimension.
#pragma once

#include <cstdint>
#include <utility>

#include "gable/ops/index.hpp"

namespace gable {

/// The first k values of each line of x along `dim` in sorted order, and their positions; k is the
/// outputs' size there. Stable; NaN comes last in both directions.
template <class T>
struct SortArgs {
  static constexpr const char* name = "sort";
  TensorView<T> values;
  TensorView<int64_t> indices;
  TensorView<const T> x;
  int dim;
  bool descending;
  [[nodiscard]] Cost cost() const {
    return {.flops = x.numel(),
            .bytes_read = x.bytes(),
            .bytes_written = values.bytes() + indices.bytes()};
  }
};

/// What sort() and topk() return.
template <class X>
struct Sorted {
  X values;
  Tensor<int64_t> indices;
};

template <Element T>
struct SortOp : OpBase {
  static constexpr const char* name = "sort";
  int64_t dim;
  bool descending;
  int64_t k;  ///< -1: all
  Shape shape;
  Saved<int64_t> saved_indices;

  SortOp(int64_t d, bool down, int64_t count = -1) : dim(d), descending(down), k(count) {}

  std::pair<Tensor<T>, Tensor<int64_t>> forward(const Tensor<T>& x) {
    dim = wrap_dim(dim, x.rank(), name);
    shape = x.shape();
    Shape result = shape;
    if (k >= 0 && !result.empty()) result[static_cast<int>(dim)] = k;
    Tensor<T> values(result, x.device());
    Tensor<int64_t> indices(result, x.device());
    launch(x.device(),
           SortArgs<T>{detail::at_least_1d(values.write_view(name)),
                       detail::at_least_1d(indices.write_view(name)), detail::at_least_1d(x.view()),
                       static_cast<int>(dim), descending});
    if (recording()) saved_indices.save(indices);
    return {values, indices};
  }
  Grads<1> backward(const Tensor<T>& dy) requires FloatElement<T> {
    return {
        detail::scatter_add(Tensor<T>(), shape, static_cast<int>(dim), saved_indices.get(name), dy)
            .any()};
  }
};

/// Values of x in ascending (descending) order along `dim`, and their positions in x. Stable:
/// equal values keep their order. NaN comes last in both directions. Any dtype.
template <TensorLike X>
auto sort(const X& x, int64_t dim = -1, bool descending = false) {
  auto [values, indices] = apply(SortOp<element_of<X>>(dim, descending), x);
  return Sorted<decltype(values)>{std::move(values), std::move(indices)};
}

/// The indices of sort() alone.
template <Element T>
[[nodiscard]] Tensor<int64_t> argsort(const Tensor<T>& x, int64_t dim = -1,
                                      bool descending = false) {
  return sort(x, dim, descending).indices;
}

/// The k largest (smallest) values along `dim`, in order, and their positions; of equal values
/// the first ones. NaN counts as the last choice. Throws ShapeError for k outside [0, size]
/// (a scalar: k = 1).
template <TensorLike X>
auto topk(const X& x, int64_t k, int64_t dim = -1, bool largest = true) {
  check(x.defined(), "topk", "expected a defined tensor, got an undefined one");
  const int d = wrap_dim(dim, static_cast<int>(x.shape().size()), "topk");
  const int64_t size = x.shape().empty() ? 1 : x.shape()[d];
  const int64_t least = x.shape().empty() ? 1 : 0;  // a scalar has no dimension to empty
  check(k >= least && k <= size, "topk", "expected k in [", least, ", ", size, "] for shape ",
        x.shape(), ", got ", k);
  auto [values, indices] = apply(SortOp<element_of<X>>(d, largest, k), x);
  return Sorted<decltype(values)>{std::move(values), std::move(indices)};
}

}  // namespace gable
