// SPDX-License-Identifier: Apache-2.0
// cat, stack and their inverses split and chunk.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "gable/ops/view.hpp"

namespace gable {

namespace detail {
/// Shape of cat(tensors, dim); `wrapped` gets the dimension. Throws ShapeError, DeviceError,
/// IndexError.
[[nodiscard]] Shape cat_shape(std::span<const AnyTensor> tensors, int64_t dim, int& wrapped);
/// Writes the tensors side by side into `out`, whose shape has been checked.
void cat_into(const AnyTensor& out, std::span<const AnyTensor> tensors, int dim);
/// A fresh result: channels-last if all tensors are, else row-major.
[[nodiscard]] AnyTensor cat_tensors(std::span<const AnyTensor> tensors, int64_t dim, int& wrapped);
/// stack() as cat() of the unsqueezed tensors. Throws ShapeError for unequal shapes.
[[nodiscard]] std::vector<AnyTensor> unsqueeze_all(std::span<const AnyTensor> tensors, int64_t dim);
void check_cat_out(Where where, const AnyTensor& out, const Shape& shape,
                   std::span<const AnyTensor> tensors);
/// Sizes of the pieces of split(x, size) or chunk; checked.
[[nodiscard]] std::vector<int64_t> split_sizes(int64_t total, int64_t size);
[[nodiscard]] std::vector<int64_t> chunk_sizes(int64_t total, int64_t chunks);
void check_split(const Shape& shape, int dim, std::span<const int64_t> sizes);

template <class X>
std::vector<AnyTensor> any_tensors(std::span<const X> xs) {
  std::vector<AnyTensor> out;
  out.reserve(xs.size());
  for (const X& x : xs) out.push_back(x.any());
  return out;
}
}  // namespace detail

/// Gradients are views of dy.
template <Element T>
struct CatOp : OpBase {
  static constexpr const char* name = "cat";
  int64_t dim;
  int wrapped = 0;
  std::vector<int64_t> sizes;

  explicit CatOp(int64_t d) : dim(d) {}

  Tensor<T> forward(std::span<const Tensor<T>> xs) {
    Tensor<T> y(detail::cat_tensors(detail::any_tensors(xs), dim, wrapped));
    if (recording())
      for (const Tensor<T>& x : xs) sizes.push_back(x.size(wrapped));
    return y;
  }
  std::vector<AnyTensor> backward(const Tensor<T>& dy) {
    std::vector<AnyTensor> out;
    int64_t start = 0;
    for (const int64_t n : sizes) {
      out.push_back(dy.narrow(wrapped, start, n).any());
      start += n;
    }
    return out;
  }
};

template <Element T>
struct StackOp : OpBase {
  static constexpr const char* name = "stack";
  int64_t dim;
  int wrapped = 0;
  size_t count = 0;

  explicit StackOp(int64_t d) : dim(d) {}

  Tensor<T> forward(std::span<const Tensor<T>> xs) {
    count = xs.size();
    return Tensor<T>(
        detail::cat_tensors(detail::unsqueeze_all(detail::any_tensors(xs), dim), dim, wrapped));
  }
  std::vector<AnyTensor> backward(const Tensor<T>& dy) {
    std::vector<AnyTensor> out;
    for (size_t i = 0; i < count; ++i)
      out.push_back(dy.select(wrapped, static_cast<int64_t>(i)).any());
    return out;
  }
};

// --- public functions

/// Tensors side by side along `dim`; all other sizes must be equal. Throws ShapeError for an empty
/// list, other ranks or sizes.
template <TensorLike X>
auto cat(const std::vector<X>& xs, int64_t dim = 0) {
  return apply_list(CatOp<element_of<X>>(dim), std::span<const X>(xs));
}
template <TensorLike X>
auto cat(std::initializer_list<X> xs, int64_t dim = 0) {
  return apply_list(CatOp<element_of<X>>(dim), std::span<const X>(xs.begin(), xs.size()));
}
/// Into `out`; inputs that overlap it are read as if cloned first.
template <Element T>
const Tensor<T>& cat_out(const Tensor<T>& out, const std::vector<Tensor<T>>& xs, int64_t dim = 0) {
  const std::vector<AnyTensor> inputs = detail::any_tensors(std::span<const Tensor<T>>(xs));
  int wrapped = 0;
  detail::check_cat_out("cat", out, detail::cat_shape(inputs, dim, wrapped), inputs);
  detail::cat_into(out, inputs, wrapped);
  return out;
}

/// Tensors of one shape along a new dimension `dim`.
template <TensorLike X>
auto stack(const std::vector<X>& xs, int64_t dim = 0) {
  return apply_list(StackOp<element_of<X>>(dim), std::span<const X>(xs));
}
template <TensorLike X>
auto stack(std::initializer_list<X> xs, int64_t dim = 0) {
  return apply_list(StackOp<element_of<X>>(dim), std::span<const X>(xs.begin(), xs.size()));
}
template <Element T>
const Tensor<T>& stack_out(const Tensor<T>& out, const std::vector<Tensor<T>>& xs,
                           int64_t dim = 0) {
  const std::vector<AnyTensor> inputs =
      detail::unsqueeze_all(detail::any_tensors(std::span<const Tensor<T>>(xs)), dim);
  int wrapped = 0;
  detail::check_cat_out("stack", out, detail::cat_shape(inputs, dim, wrapped), inputs);
  detail::cat_into(out, inputs, wrapped);
  return out;
}

/// Views of the given sizes along `dim`, which must add up to it.
template <TensorLike X>
auto split(const X& x, const std::vector<int64_t>& sizes, int64_t dim = 0) {
  check(x.defined(), "split", "expected a defined tensor, got an undefined one");
  const int d = x.layout().wrap_dim(dim, "split");
  detail::check_split(x.shape(), d, sizes);
  std::vector<decltype(narrow(x, 0, 0, 0))> out;
  int64_t start = 0;
  for (const int64_t n : sizes) {
    out.push_back(narrow(x, d, start, n));
    start += n;
  }
  return out;
}
/// Views of `size` along `dim`; the last may be smaller.
template <TensorLike X>
auto split(const X& x, int64_t size, int64_t dim = 0) {
  return split(x, detail::split_sizes(x.layout().size(x.layout().wrap_dim(dim, "split")), size),
               dim);
}
/// At most `chunks` views of equal size (the last may be smaller) along `dim`.
template <TensorLike X>
auto chunk(const X& x, int64_t chunks, int64_t dim = 0) {
  return split(x, detail::chunk_sizes(x.layout().size(x.layout().wrap_dim(dim, "chunk")), chunks),
               dim);
}

}  // namespace gable
