// SPDX-License-Identifier: Apache-2.0
// pad and roll as strided copies.
#include "gable/ops/pad.hpp"

#include <algorithm>

#include "gable/ops/sum_to.hpp"

namespace gable::detail {

PadAmounts pad_amounts(const Shape& shape, const PadSizes& padding, PadMode mode) {
  std::string text;
  for (const int64_t p : padding) text += concat(text.empty() ? "" : ", ", p);
  check(padding.size() % 2 == 0 && padding.size() <= 2 * static_cast<size_t>(shape.size()), "pad",
        "expected a pair of amounts for each of at most ", shape.size(), " dimensions, got (", text,
        ") for shape ", shape);
  PadAmounts out;
  out.shape = shape;
  for (size_t i = 0; i < padding.size(); i += 2) {
    const int d = shape.size() - 1 - static_cast<int>(i / 2);
    const auto at = static_cast<size_t>(d);
    const int64_t before = out.before[at] = padding[i];
    const int64_t after = out.after[at] = padding[i + 1];
    const int64_t n = shape[d];
    int64_t size = 0;
    const bool overflow =
        __builtin_add_overflow(n, before, &size) || __builtin_add_overflow(size, after, &size);
    // A cut may not take more than there is, even where the other side adds.
    const bool cut = before >= -n && after >= -n &&
                     n + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0) >= 0;
    check(!overflow && cut, "pad", "expected amounts that leave dimension ", d, " of shape ", shape,
          " a size, got (", text, ")");
    if (mode != PadMode::constant && (before != 0 || after != 0)) {
      check(before >= 0 && after >= 0, "pad", "expected amounts >= 0 for this mode, got (", text,
            ")");
      const int64_t limit = mode == PadMode::reflect ? n - 1 : mode == PadMode::circular ? n : size;
      check(n > 0 && before <= limit && after <= limit, "pad", "expected amounts of at most ",
            std::max<int64_t>(limit, 0), " for dimension ", d, " of shape ", shape, ", got (", text,
            ")");
    }
    out.shape[d] = size;
  }
  return out;
}

std::pair<Layout, Layout> pad_parts(const Layout& x, const Layout& out, const PadAmounts& amounts) {
  Layout from = x;
  Layout to = out;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t before = amounts.before[static_cast<size_t>(d)];
    const int64_t after = amounts.after[static_cast<size_t>(d)];
    const int64_t kept = x.shape()[d] + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    from = from.narrow(d, std::max<int64_t>(-before, 0), kept, "pad");
    to = to.narrow(d, std::max<int64_t>(before, 0), kept, "pad");
  }
  return {from, to};
}

Layout layout_like(const Layout& x, const Shape& shape) {
  const bool channels_last = x.is_channels_last() && !x.is_contiguous();
  return Layout(shape, channels_last ? MemoryFormat::channels_last : MemoryFormat::row_major);
}

namespace {

AnyTensor part(const AnyTensor& x, int dim, int64_t start, int64_t length) {
  return x.with(x.layout().narrow(dim, start, length, "pad"));
}

// Where the `before` and `after` edges of the padded dimension come from: (start, length) in the
// input. Replicated edges come from one element.
struct Edge {
  AnyTensor padded;  // part of the padded tensor
  AnyTensor source;  // part of the input, as large or of size 1 in the dimension
};

std::array<Edge, 2> edges(const AnyTensor& padded, const AnyTensor& x, int d, int64_t before,
                          int64_t after, PadMode mode) {
  const int64_t n = x.shape()[d];
  std::array<Edge, 2> out = {Edge{part(padded, d, 0, before), {}},
                             Edge{part(padded, d, before + n, after), {}}};
  auto reversed = [&](const AnyTensor& t) { return t.with(t.layout().flip({d})); };
  switch (mode) {
    case PadMode::reflect:
      out[0].source = reversed(part(x, d, 1, before));
      out[1].source = reversed(part(x, d, n - 1 - after, after));
      break;
    case PadMode::circular:
      out[0].source = part(x, d, n - before, before);
      out[1].source = part(x, d, 0, after);
      break;
    default: out[0].source = part(x, d, 0, 1); out[1].source = part(x, d, n - 1, 1);
  }
  return out;
}

bool padded_in(const PadAmounts& a, int d) {
  return a.before[static_cast<size_t>(d)] != 0 || a.after[static_cast<size_t>(d)] != 0;
}

}  // namespace

AnyTensor pad_edges(const AnyTensor& x, const PadAmounts& amounts, PadMode mode) {
  AnyTensor out = x;
  Shape shape = x.shape();
  for (int d = 0; d < shape.size(); ++d) {
    if (!padded_in(amounts, d)) continue;
    const int64_t before = amounts.before[static_cast<size_t>(d)];
    const int64_t after = amounts.after[static_cast<size_t>(d)];
    shape[d] = amounts.shape[d];
    const AnyTensor wider = AnyTensor::empty(layout_like(x.layout(), shape), x.dtype(), x.device());
    part(wider, d, before, out.shape()[d]).copy_(out);
    for (const Edge& e : edges(wider, out, d, before, after, mode)) e.padded.copy_(e.source);
    out = wider;
  }
  return out.storage() == x.storage() ? x.clone() : out;
}

AnyTensor pad_edges_backward(const AnyTensor& dy, const Shape& shape, const PadAmounts& amounts,
                             PadMode mode) {
  AnyTensor gradient = dy;
  for (int d = shape.size() - 1; d >= 0; --d) {
    if (!padded_in(amounts, d)) continue;
    const int64_t before = amounts.before[static_cast<size_t>(d)];
    const int64_t after = amounts.after[static_cast<size_t>(d)];
    const AnyTensor inner = part(gradient, d, before, shape[d]).clone();
    for (const Edge& e : edges(gradient, inner, d, before, after, mode)) {
      if (e.padded.numel() == 0) continue;
      if (e.source.shape() == e.padded.shape()) {
        e.source.accumulate_(e.padded, "pad");
        continue;
      }
      visit_dtype(dy.dtype(), [&]<class T>(TypeTag<T>) {
        if constexpr (FloatElement<T>)
          e.source.accumulate_(sum_to(e.padded.as<T>(), e.source.shape()), "pad");
      });
    }
    gradient = inner;
  }
  return gradient;
}

AnyTensor roll_tensor(const AnyTensor& x, const Dims& shifts, const Dims& dims) {
  if (dims.empty()) {
    check(shifts.size() == 1, "roll", "expected one shift without dimensions, got ", shifts);
    return roll_tensor(x.reshape({-1}), shifts, {0}).reshape(x.shape());
  }
  check(shifts.size() == dims.size(), "roll", "expected a shift a dimension, got shifts ", shifts,
        " and dimensions ", dims);
  check<IndexError>(x.layout().rank() > 0, "roll",
                    "expected a tensor with dimensions, got a scalar");
  const Dims wrapped = wrap_dims(dims, x.layout().rank(), "roll");
  const AnyTensor out = AnyTensor::empty(x.layout().like(), x.dtype(), x.device());
  if (x.numel() == 0) return out;
  // Every dimension cuts the result in two parts: 2^k copies, each of a block.
  const int k = wrapped.size();
  for (unsigned corner = 0; corner < (1U << static_cast<unsigned>(k)); ++corner) {
    Layout from = x.layout();
    Layout to = out.layout();
    for (int i = 0; i < k; ++i) {
      const int d = static_cast<int>(wrapped[i]);
      const int64_t n = x.shape()[d];
      const int64_t shift = (shifts[i] % n + n) % n;
      const bool wraps = ((corner >> static_cast<unsigned>(i)) & 1U) != 0;
      from = wraps ? from.narrow(d, n - shift, shift) : from.narrow(d, 0, n - shift);
      to = wraps ? to.narrow(d, 0, shift) : to.narrow(d, shift, n - shift);
    }
    if (from.numel() > 0) out.with(to).copy_(x.with(from), "roll");
  }
  return out;
}

}  // namespace gable::detail
