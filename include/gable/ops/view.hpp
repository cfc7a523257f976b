// SPDX-License-Identifier: Apache-2.0
// Differentiable views: narrow, transpose, reshape, expand, ... of Tensors and Variables. They
// share memory with their input (reshape and flatten where strides allow).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "gable/ops/op.hpp"
#include "gable/ops/sum_to.hpp"

namespace gable {

namespace detail {
/// view += source, where elements of `view` may overlap each other: non-overlapping parts are
/// added one after the other, in a fixed order.
void accumulate_overlapping(const AnyTensor& view, const AnyTensor& source);
/// Gradient of a view: zeros laid out as `base`, to whose part `view` dy is added. Overlapping
/// views add in the type of Compute.
[[nodiscard]] AnyTensor scatter_view(const AnyTensor& dy, const Layout& base, const Layout& view);
/// Gradient of as_strided: `view` and `base` address one storage, and elements of the view
/// outside `base` give nothing.
[[nodiscard]] AnyTensor scatter_as_strided(const AnyTensor& dy, const Layout& base,
                                           const Layout& view);
}  // namespace detail

/// A view by a function of layouts. Its gradient adds dy into zeros through the same function, or
/// is a view of dy where `inverse` undoes it.
template <Element T>
struct ViewOp : OpBase {
  using Transform = std::function<Layout(const Layout&)>;
  const char* name;
  Transform transform;
  Transform inverse;  ///< empty where the view drops or repeats elements
  Layout base;

  ViewOp(const char* op, Transform forward_transform, Transform inverse_transform = {})
      : name(op), transform(std::move(forward_transform)), inverse(std::move(inverse_transform)) {}

  Tensor<T> forward(const Tensor<T>& x) {
    if (recording() && !inverse) base = x.layout().like();
    return x.with(transform(x.layout()));
  }
  Grads<1> backward(const Tensor<T>& dy) {
    if (inverse) return {dy.with(inverse(dy.layout())).any()};
    return {detail::scatter_view(dy, base, transform(base))};
  }
};

/// view, reshape and flatten; `copies` where strides may fail to express the shape.
template <Element T>
struct ReshapeOp : OpBase {
  const char* name;
  Shape shape;
  bool copies;
  Shape input_shape;

  ReshapeOp(const char* op, const Shape& to, bool may_copy)
      : name(op), shape(to), copies(may_copy) {}

  Tensor<T> forward(const Tensor<T>& x) {
    input_shape = x.shape();
    return copies ? x.reshape(shape) : x.view(shape);
  }
  Grads<1> backward(const Tensor<T>& dy) { return {dy.reshape(input_shape).any()}; }
};

/// Gradients of the stretched dimensions are summed.
template <Element T>
struct ExpandOp : OpBase {
  const char* name;
  Shape shape;
  Shape input_shape;

  ExpandOp(const char* op, const Shape& to) : name(op), shape(to) {}

  Tensor<T> forward(const Tensor<T>& x) {
    input_shape = x.shape();
    return x.with(x.layout().expand(shape, name));
  }
  Grads<1> backward(const Tensor<T>& dy) {
    if constexpr (FloatElement<T>) return {sum_to(dy, input_shape).any()};
    return {};  // other types have no gradients
  }
};

/// Gradients go to the elements of the input that the view addressed.
template <Element T>
struct AsStridedOp : OpBase {
  static constexpr const char* name = "as_strided";
  Shape sizes;
  Strides strides;
  std::optional<int64_t> offset;
  Layout base;
  Layout view;

  AsStridedOp(const Shape& s, const Strides& st, std::optional<int64_t> o)
      : sizes(s), strides(st), offset(o) {}

  Tensor<T> forward(const Tensor<T>& x) {
    const Tensor<T> y = x.as_strided(sizes, strides, offset);
    if (recording()) {
      check(!x.layout().overlaps_itself(), name,
            "expected an input whose elements do not overlap, got ", x.layout());
      base = x.layout();
      view = y.layout();
    }
    return y;
  }
  Grads<1> backward(const Tensor<T>& dy) { return {detail::scatter_as_strided(dy, base, view)}; }
};

// --- public functions: x is a Tensor, Variable or Parameter. Semantics and errors are those of the
// members of Tensor.

template <TensorLike X>
auto narrow(const X& x, int64_t dim, int64_t start, int64_t length) {
  return apply(ViewOp<element_of<X>>("narrow",
                                     [=](const Layout& l) { return l.narrow(dim, start, length); }),
               x);
}

template <TensorLike X>
auto select(const X& x, int64_t dim, int64_t index) {
  return apply(
      ViewOp<element_of<X>>("select", [=](const Layout& l) { return l.select(dim, index); }), x);
}

template <TensorLike X>
auto slice(const X& x, int64_t dim, std::optional<int64_t> start = {},
           std::optional<int64_t> stop = {}, int64_t step = 1) {
  return apply(ViewOp<element_of<X>>(
                   "slice", [=](const Layout& l) { return l.slice(dim, start, stop, step); }),
               x);
}

template <TensorLike X>
auto transpose(const X& x, int64_t a, int64_t b) {
  auto swap = [=](const Layout& l) { return l.transpose(a, b); };
  return apply(ViewOp<element_of<X>>("transpose", swap, swap), x);
}

template <TensorLike X>
auto permute(const X& x, const Dims& order) {
  auto back = [order](const Layout& l) {
    const Dims wrapped = wrap_dims(order, l.rank(), "permute");
    Dims inverse = wrapped;
    for (int d = 0; d < l.rank(); ++d) inverse[static_cast<int>(wrapped[d])] = d;
    return l.permute(inverse);
  };
  return apply(ViewOp<element_of<X>>(
                   "permute", [order](const Layout& l) { return l.permute(order); }, back),
               x);
}

template <TensorLike X>
auto squeeze(const X& x, int64_t dim) {
  return apply(ReshapeOp<element_of<X>>("squeeze", x.layout().squeeze(dim).shape(), false), x);
}

template <TensorLike X>
auto squeeze(const X& x) {
  return apply(ReshapeOp<element_of<X>>("squeeze", x.layout().squeeze().shape(), false), x);
}

template <TensorLike X>
auto unsqueeze(const X& x, int64_t dim) {
  return apply(ViewOp<element_of<X>>(
                   "unsqueeze", [=](const Layout& l) { return l.unsqueeze(dim); },
                   [=](const Layout& l) { return l.squeeze(dim); }),
               x);
}

template <TensorLike X>
auto view(const X& x, const Shape& shape) {
  return apply(ReshapeOp<element_of<X>>("view", shape, false), x);
}

template <TensorLike X>
auto reshape(const X& x, const Shape& shape) {
  return apply(ReshapeOp<element_of<X>>("reshape", shape, true), x);
}

template <TensorLike X>
auto flatten(const X& x, int64_t first = 0, int64_t last = -1) {
  return apply(ReshapeOp<element_of<X>>("flatten", x.layout().flatten_shape(first, last), true), x);
}

template <TensorLike X>
auto expand(const X& x, const Shape& shape) {
  return apply(ExpandOp<element_of<X>>("expand", shape), x);
}

template <TensorLike X>
auto broadcast_to(const X& x, const Shape& shape) {
  return apply(ExpandOp<element_of<X>>("broadcast_to", shape), x);
}

template <TensorLike X>
auto unfold(const X& x, int64_t dim, int64_t size, int64_t step) {
  return apply(
      ViewOp<element_of<X>>("unfold", [=](const Layout& l) { return l.unfold(dim, size, step); }),
      x);
}

template <TensorLike X>
auto diagonal(const X& x, int64_t offset = 0, int64_t a = 0, int64_t b = 1) {
  return apply(
      ViewOp<element_of<X>>("diagonal", [=](const Layout& l) { return l.diagonal(offset, a, b); }),
      x);
}

template <TensorLike X>
auto as_strided(const X& x, const Shape& sizes, const Strides& strides,
                std::optional<int64_t> offset = {}) {
  return apply(AsStridedOp<element_of<X>>(sizes, strides, offset), x);
}

/// Reversed along `dims` (all if empty): a view with negative strides, as NumPy's flip.
template <TensorLike X>
auto flip(const X& x, const Dims& dims) {
  auto reverse = [dims](const Layout& l) { return l.flip(dims); };
  return apply(ViewOp<element_of<X>>("flip", reverse, reverse), x);
}

}  // namespace gable
