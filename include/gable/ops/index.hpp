// SPDX-License-Identifier: Apache-2.0
// Indexing: gather, scatter_add, index_select, embedding, one_hot. Indices are int64 in
// [0, size); others throw IndexError, which names the position, before anything is written.
#pragma once

#include <cstdint>
#include <optional>

#include "gable/ops/check_indices.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/reduce_functors.hpp"

namespace gable {

// --- kernels' arguments; indices are in range, and out does not overlap the inputs

/// out[..., i, ...] = x[..., index[..., i, ...], ...] along `dim`; out has index's shape.
template <class T>
struct GatherArgs {
  static constexpr const char* name = "gather";
  TensorView<T> out;
  TensorView<const T> x;
  TensorView<const int64_t> index;
  int dim;
  [[nodiscard]] Cost cost() const {
    return {.bytes_read = out.bytes() + index.bytes(), .bytes_written = out.bytes()};
  }
};

/// out[..., index[..., i, ...], ...] += src[..., i, ...] along `dim`, in ascending i, over index's
/// shape.
template <class T>
struct ScatterAddArgs {
  static constexpr const char* name = "scatter_add";
  TensorView<Compute<T>> out;
  TensorView<const T> src;
  TensorView<const int64_t> index;
  int dim;
  [[nodiscard]] Cost cost() const {
    return {.flops = index.numel(),
            .bytes_read = 2 * src.bytes() + index.bytes(),
            .bytes_written = src.bytes()};
  }
};

/// out[.., i, ..] = x[.., index[i], ..] along `dim`: a gather of whole slices, which are copied as
/// rows and not element by element.
template <class T>
struct IndexSelectArgs {
  static constexpr const char* name = "index_select";
  TensorView<T> out;
  TensorView<const T> x;
  TensorView<const int64_t> index;
  int dim;
  [[nodiscard]] Cost cost() const {
    return {.bytes_read = out.bytes() + index.bytes(), .bytes_written = out.bytes()};
  }
};

/// out[.., index[i], ..] += src[.., i, ..] along `dim`, in ascending i, where index[i] is not
/// `skipped`: a scatter_add of whole slices, as rows.
template <class T>
struct IndexAddArgs {
  static constexpr const char* name = "index_add";
  TensorView<Compute<T>> out;
  TensorView<const T> src;
  TensorView<const int64_t> index;
  int dim;
  std::optional<int64_t> skipped;
  [[nodiscard]] Cost cost() const {
    return {.flops = src.numel(),
            .bytes_read = 2 * src.bytes() + index.bytes(),
            .bytes_written = src.bytes()};
  }
};

/// out (index's shape, classes) is 1 at the index and 0 elsewhere.
template <class T>
struct OneHotArgs {
  static constexpr const char* name = "one_hot";
  TensorView<T> out;
  TensorView<const int64_t> index;
  [[nodiscard]] Cost cost() const {
    return {.bytes_read = index.bytes(), .bytes_written = out.bytes()};
  }
};

namespace detail {

/// Throws ShapeError unless `index` has x's rank and is no larger than x beside `dim`.
void check_index_shape(Where where, const Shape& index, const Shape& x, int dim);
/// `view` with a leading dimension if it is a scalar.
template <class T>
[[nodiscard]] TensorView<T> at_least_1d(TensorView<T> view) {
  if (view.rank() == 0) view.layout = view.layout.unsqueeze(0);
  return view;
}

template <Element T>
[[nodiscard]] Tensor<T> gather(const Tensor<T>& x, int dim, const Tensor<int64_t>& index) {
  Tensor<T> out(index.shape(), x.device());
  launch(x.device(), GatherArgs<T>{at_least_1d(out.write_view("gather")), at_least_1d(x.view()),
                                   at_least_1d(index.view()), dim});
  return out;
}

/// Adds to a new tensor of x's values (undefined x: zeros), in Compute<T>.
template <Element T>
[[nodiscard]] Tensor<Compute<T>> scatter_add(const Tensor<T>& x, const Shape& shape, int dim,
                                             const Tensor<int64_t>& index, const Tensor<T>& src) {
  using C = Compute<T>;
  Tensor<C> out = zeros<C>(shape, {.device = src.device()});
  if (x.defined()) out.copy_(x);
  launch(src.device(), ScatterAddArgs<T>{at_least_1d(out.write_view("scatter_add")),
                                         at_least_1d(src.view()), at_least_1d(index.view()), dim});
  return out;
}

}  // namespace detail

// --- operators

template <Element T>
struct GatherOp : OpBase {
  static constexpr const char* name = "gather";
  int64_t dim;
  Shape shape;
  Saved<int64_t> saved_index;

  explicit GatherOp(int64_t d) : dim(d) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<int64_t>& index) {
    dim = wrap_dim(dim, x.rank(), name);
    detail::check_index_shape(name, index.shape(), x.shape(), static_cast<int>(dim));
    detail::check_same_device(name, x, index);
    detail::check_indices(name, index, x.rank() == 0 ? 1 : x.size(dim));
    shape = x.shape();
    if (recording()) saved_index.save(index);
    return detail::gather(x, static_cast<int>(dim), index);
  }
  Grads<2> backward(const Tensor<T>& dy) requires FloatElement<T> {
    return {
        detail::scatter_add(Tensor<T>(), shape, static_cast<int>(dim), saved_index.get(name), dy)
            .any(),
        AnyTensor()};
  }
};

template <Element T>
struct ScatterAddOp : OpBase {
  static constexpr const char* name = "scatter_add";
  int64_t dim;
  Shape src_shape;
  Saved<int64_t> saved_index;

  explicit ScatterAddOp(int64_t d) : dim(d) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<int64_t>& index, const Tensor<T>& src) {
    dim = wrap_dim(dim, x.rank(), name);
    detail::check_index_shape(name, index.shape(), x.shape(), static_cast<int>(dim));
    detail::check_index_shape(name, index.shape(), src.shape(), -1);
    detail::common_device(name, x, index, src);
    detail::check_indices(name, index, x.rank() == 0 ? 1 : x.size(dim));
    src_shape = src.shape();
    if (recording()) saved_index.save(index);
    return detail::scatter_add(x, x.shape(), static_cast<int>(dim), index, src).template to<T>();
  }
  Grads<3> backward(const Tensor<T>& dy) requires FloatElement<T> {
    Grads<3> out;
    if (needs(0)) out[0] = dy.any();
    if (needs(2)) {
      const Tensor<int64_t>& index = saved_index.get(name);
      const Tensor<T> picked = detail::gather(dy, static_cast<int>(dim), index);
      if (index.shape() == src_shape) {
        out[2] = picked.any();
      } else {  // the rest of src was not read
        Tensor<T> whole = zeros<T>(src_shape, {.device = dy.device()});
        Tensor<T> part = whole;
        for (int d = 0; d < index.rank(); ++d) part = part.narrow(d, 0, index.shape()[d]);
        part.copy_(picked);
        out[2] = whole.any();
      }
    }
    return out;
  }
};

template <Element T>
struct IndexSelectOp : OpBase {
  static constexpr const char* name = "index_select";
  int64_t dim;
  Shape shape;
  Saved<int64_t> saved_index;

  explicit IndexSelectOp(int64_t d) : dim(d) {}

  Tensor<T> forward(const Tensor<T>& x, const Tensor<int64_t>& index) {
    check(x.rank() > 0, name, "expected a tensor with dimensions, got shape ", x.shape());
    dim = wrap_dim(dim, x.rank(), name);
    check(index.rank() == 1, name, "expected indices of shape (n), got ", index.shape());
    detail::check_same_device(name, x, index);
    detail::check_indices(name, index, x.size(dim));
    shape = x.shape();
    if (recording()) saved_index.save(index);
    Shape result = shape;
    result[static_cast<int>(dim)] = index.numel();
    Tensor<T> out(result, x.device());
    launch(x.device(),
           IndexSelectArgs<T>{out.write_view(name), x.view(), index.view(), static_cast<int>(dim)});
    return out;
  }
  Grads<2> backward(const Tensor<T>& dy) requires FloatElement<T> {
    using C = Compute<T>;
    Tensor<C> dx = zeros<C>(shape, {.device = dy.device()});
    launch(dy.device(), IndexAddArgs<T>{dx.write_view(name),
                                        dy.view(),
                                        saved_index.get(name).view(),
                                        static_cast<int>(dim),
                                        {}});
    return {dx.any(), AnyTensor()};
  }
};

template <FloatElement T>
struct EmbeddingOp : OpBase {
  static constexpr const char* name = "embedding";
  std::optional<int64_t> padding;
  Shape shape;
  Saved<int64_t> saved_index;  ///< one dimension

  explicit EmbeddingOp(std::optional<int64_t> padding_index) : padding(padding_index) {}

  Tensor<T> forward(const Tensor<T>& weight, const Tensor<int64_t>& indices) {
    check(weight.rank() == 2, name, "expected a weight of shape (V, D), got ", weight.shape());
    detail::check_same_device(name, weight, indices);
    if (padding) {
      const int64_t rows = weight.size(0);
      check<IndexError>(*padding >= -rows && *padding < rows, name, "expected a padding index in [",
                        -rows, ", ", rows, "), got ", *padding);
      if (*padding < 0) *padding += rows;
    }
    detail::check_indices(name, indices, weight.size(0));
    shape = weight.shape();
    const Tensor<int64_t> flat = materialize(indices).view({indices.numel()});
    if (recording()) saved_index.save(flat);
    Shape result = indices.shape();
    result.push_back(weight.size(1));
    const Tensor<T> out(Shape{flat.numel(), weight.size(1)}, weight.device());
    launch(weight.device(),
           IndexSelectArgs<T>{out.write_view(name), weight.view(), flat.view(), 0});
    return out.view(result);
  }
  Grads<2> backward(const Tensor<T>& dy) {
    using C = Compute<T>;
    const Tensor<int64_t>& index = saved_index.get(name);
    const Tensor<C> dw = zeros<C>(shape, {.device = dy.device()});
    const Tensor<T> rows = materialize(dy).view({index.numel(), shape[1]});
    launch(dy.device(),
           IndexAddArgs<T>{dw.write_view(name), rows.view(), index.view(), 0, padding});
    return {dw.any(), AnyTensor()};
  }
};

// --- public functions

/// out[i][j] = x[index[i][j]][j] for dim 0, and so on; `index` has x's rank and is no larger than
/// x in the other dimensions. Any dtype. The gradient is scatter_add.
template <TensorLike X>
auto gather(const X& x, int64_t dim, const Tensor<int64_t>& index) {
  return apply(GatherOp<element_of<X>>(dim), x, index);
}

/// A new tensor: x with src[i][j] added at [index[i][j]][j] for dim 0, and so on, for all of
/// index's positions. Equal indices add up in ascending order of i, whatever the number of
/// threads; 16-bit types add up in float and round once. Numeric dtypes.
template <TensorLike X, TensorLike S>
requires std::same_as<element_of<X>, element_of<S>>
auto scatter_add(const X& x, int64_t dim, const Tensor<int64_t>& index, const S& src) {
  return apply(ScatterAddOp<element_of<X>>(dim), x, index, src);
}
/// In place.
template <Element T>
const Tensor<T>& scatter_add_(const Tensor<T>& x, int64_t dim, const Tensor<int64_t>& index,
                              const Tensor<T>& src) {
  return x.copy_(scatter_add(x, dim, index, src));
}

/// The slices of x along `dim` that `indices` (n) names, in their order. Any dtype.
template <TensorLike X>
auto index_select(const X& x, int64_t dim, const Tensor<int64_t>& indices) {
  return apply(IndexSelectOp<element_of<X>>(dim), x, indices);
}

/// Rows of weight (V, D): result (indices' shape, D). The gradient of row `padding_index`
/// (negative counts from the end) is 0; the others are summed in float in a fixed order.
template <FloatTensorLike W>
auto embedding(const W& weight, const Tensor<int64_t>& indices,
               std::optional<int64_t> padding_index = {}) {
  return apply(EmbeddingOp<element_of<W>>(padding_index), weight, indices);
}

/// (indices' shape, classes): 1 at the index, 0 elsewhere. Throws ShapeError for classes < 1.
template <Element T = int64_t>
[[nodiscard]] Tensor<T> one_hot(const Tensor<int64_t>& indices, int64_t classes) {
  check(indices.defined(), "one_hot", "expected a defined tensor, got an undefined one");
  check(classes >= 1, "one_hot", "expected at least one class, got ", classes);
  detail::check_indices("one_hot", indices, classes);
  Shape shape = indices.shape();
  shape.push_back(classes);
  Tensor<T> out(shape, indices.device());
  launch(indices.device(), OneHotArgs<T>{out.write_view("one_hot"), indices.view()});
  return out;
}

}  // namespace gable
