// SPDX-License-Identifier: Apache-2.0
// pad (constant, reflect, replicate, circular) and roll.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "gable/core/scalar.hpp"
#include "gable/ops/view.hpp"

namespace gable {

/// What pad() writes around the input.
enum class PadMode : uint8_t {
  constant,
  reflect,    ///< mirrored, the edge not repeated
  replicate,  ///< the edge repeated
  circular    ///< the other end
};

/// Elements added before and after each of the last dimensions, as PyTorch orders them: {left,
/// right, top, bottom, ...}. Negative amounts cut (constant mode only).
using PadSizes = std::vector<int64_t>;

namespace detail {
/// (before, after) of every dimension. Throws ShapeError.
struct PadAmounts {
  std::array<int64_t, kMaxRank> before{};
  std::array<int64_t, kMaxRank> after{};
  Shape shape;  ///< of the result
};
[[nodiscard]] PadAmounts pad_amounts(const Shape& shape, const PadSizes& padding, PadMode mode);
/// The part of `x` that constant padding keeps, and where it stands in the result.
[[nodiscard]] std::pair<Layout, Layout> pad_parts(const Layout& x, const Layout& out,
                                                  const PadAmounts& amounts);
/// Other modes, one dimension after the other; and their adjoint.
[[nodiscard]] AnyTensor pad_edges(const AnyTensor& x, const PadAmounts& amounts, PadMode mode);
[[nodiscard]] AnyTensor pad_edges_backward(const AnyTensor& dy, const Shape& shape,
                                           const PadAmounts& amounts, PadMode mode);
/// Dense layout of `shape` in x's memory format.
[[nodiscard]] Layout layout_like(const Layout& x, const Shape& shape);
/// x rolled into a fresh tensor. `dims` empty: over the flattened elements.
[[nodiscard]] AnyTensor roll_tensor(const AnyTensor& x, const Dims& shifts, const Dims& dims);
}  // namespace detail

template <Element T>
struct PadOp : OpBase {
  static constexpr const char* name = "pad";
  PadSizes padding;
  PadMode mode;
  Scalar value;
  detail::PadAmounts amounts;
  Layout base;

  PadOp(PadSizes p, PadMode m, Scalar v) : padding(std::move(p)), mode(m), value(v) {}

  Tensor<T> forward(const Tensor<T>& x) {
    amounts = detail::pad_amounts(x.shape(), padding, mode);
    base = detail::layout_like(x.layout(), x.shape());
    if (mode != PadMode::constant) return Tensor<T>(detail::pad_edges(x, amounts, mode));
    const Layout out = detail::layout_like(x.layout(), amounts.shape);
    Tensor<T> y(AnyTensor::empty(out, dtype_of<T>, x.device()));
    y.fill_(value.get<T>());
    const auto [from, to] = detail::pad_parts(x.layout(), out, amounts);
    y.with(to).copy_(x.with(from));
    return y;
  }
  Grads<1> backward(const Tensor<T>& dy) {
    if (mode != PadMode::constant)
      return {detail::pad_edges_backward(dy, base.shape(), amounts, mode)};
    const auto [from, to] = detail::pad_parts(base, dy.layout(), amounts);
    const Tensor<T> inner = dy.with(to);
    if (inner.shape() == base.shape()) return {inner.any()};  // nothing was cut
    return {detail::scatter_view(inner, base, from)};
  }
};

template <Element T>
struct RollOp : OpBase {
  static constexpr const char* name = "roll";
  Dims shifts;
  Dims dims;

  RollOp(const Dims& s, const Dims& d) : shifts(s), dims(d) {}

  Tensor<T> forward(const Tensor<T>& x) { return Tensor<T>(detail::roll_tensor(x, shifts, dims)); }
  Grads<1> backward(const Tensor<T>& dy) {
    Dims back = shifts;
    for (int64_t& s : back) s = -s;
    return {detail::roll_tensor(dy, back, dims)};
  }
};

/// x with elements added around it; keeps channels-last. Reflection needs less padding than size,
/// the other edge modes at most size or a size above 0. Throws ShapeError.
template <TensorLike X>
auto pad(const X& x, const PadSizes& padding, PadMode mode = PadMode::constant, Scalar value = 0) {
  return apply(PadOp<element_of<X>>(padding, mode, value), x);
}
/// Into `out`, which may overlap x.
template <Element T>
const Tensor<T>& pad_out(const Tensor<T>& out, const Tensor<T>& x, const PadSizes& padding,
                         PadMode mode = PadMode::constant, Scalar value = 0) {
  check(x.defined(), "pad", "expected a defined tensor, got an undefined one");
  const detail::PadAmounts amounts = detail::pad_amounts(x.shape(), padding, mode);
  check(out.defined() && out.shape() == amounts.shape, "pad", "expected an output of shape ",
        amounts.shape, ", got ", out.shape());
  detail::check_same_device("pad", out, x);
  if (mode != PadMode::constant) {
    out.any().copy_(detail::pad_edges(x, amounts, mode), "pad");
    return out;
  }
  const auto [from, to] = detail::pad_parts(x.layout(), out.layout(), amounts);
  Tensor<T> source = x.with(from);
  if (may_share_memory(source, out)) source = source.clone();
  out.fill_(value.get<T>());
  out.with(to).copy_(source);
  return out;
}

/// Elements shifted by shifts[i] along dims[i]; what leaves at one end enters at the other. Without
/// `dims`, one shift over the flattened elements.
template <TensorLike X>
auto roll(const X& x, const Dims& shifts, const Dims& dims = {}) {
  return apply(RollOp<element_of<X>>(shifts, dims), x);
}
template <Element T>
const Tensor<T>& roll_out(const Tensor<T>& out, const Tensor<T>& x, const Dims& shifts,
                          const Dims& dims = {}) {
  check(out.defined() && x.defined() && out.shape() == x.shape(), "roll",
        "expected an output of shape ", x.shape(), ", got ", out.shape());
  detail::check_same_device("roll", out, x);
  out.any().copy_(detail::roll_tensor(x, shifts, dims), "roll");
  return out;
}

}  // namespace gable
