// SPDX-License-Identifier: Apache-2.0
// cat and split: checks, and the copies into the parts of the result.
#include "gable/ops/concat.hpp"

#include <algorithm>

namespace gable::detail {

Shape cat_shape(std::span<const AnyTensor> tensors, int64_t dim, int& wrapped) {
  check(!tensors.empty(), "cat", "expected at least one tensor, got an empty list");
  for (const AnyTensor& x : tensors)
    check(x.defined(), "cat", "expected defined tensors, got an undefined one");
  Shape shape = tensors[0].shape();
  wrapped = tensors[0].layout().wrap_dim(dim, "cat");
  shape[wrapped] = 0;
  for (const AnyTensor& x : tensors) {
    Shape others = x.shape();
    bool fits = others.size() == shape.size();
    for (int d = 0; fits && d < shape.size(); ++d) fits = d == wrapped || others[d] == shape[d];
    check(fits, "cat", "expected shapes that differ only in dimension ", wrapped, ", got ",
          tensors[0].shape(), " and ", x.shape());
    check_same_device("cat", tensors[0], x);
    check(!__builtin_add_overflow(shape[wrapped], others[wrapped], &shape[wrapped]), "cat",
          "expected sizes that add up within 64 bits, got ", x.shape());
  }
  return shape;
}

void cat_into(const AnyTensor& out, std::span<const AnyTensor> tensors, int dim) {
  std::vector<AnyTensor> sources;  // all clones before the first write
  for (const AnyTensor& x : tensors) sources.push_back(separate(x, out));
  int64_t start = 0;
  for (const AnyTensor& x : sources) {
    const int64_t n = x.shape()[dim];
    if (x.numel() > 0) out.with(out.layout().narrow(dim, start, n)).copy_(x, "cat");
    start += n;
  }
}

AnyTensor cat_tensors(std::span<const AnyTensor> tensors, int64_t dim, int& wrapped) {
  const Shape shape = cat_shape(tensors, dim, wrapped);
  const bool channels_last = std::all_of(tensors.begin(), tensors.end(), [](const AnyTensor& x) {
    return x.layout().is_channels_last() && !x.layout().is_contiguous();
  });
  AnyTensor out = AnyTensor::empty(
      Layout(shape, channels_last ? MemoryFormat::channels_last : MemoryFormat::row_major),
      tensors[0].dtype(), tensors[0].device());
  cat_into(out, tensors, wrapped);
  return out;
}

std::vector<AnyTensor> unsqueeze_all(std::span<const AnyTensor> tensors, int64_t dim) {
  check(!tensors.empty(), "stack", "expected at least one tensor, got an empty list");
  std::vector<AnyTensor> out;
  for (const AnyTensor& x : tensors) {
    check(x.defined(), "stack", "expected defined tensors, got an undefined one");
    check(x.shape() == tensors[0].shape(), "stack", "expected equal shapes, got ",
          tensors[0].shape(), " and ", x.shape());
    check_same_device("stack", tensors[0], x);
    out.push_back(x.with(x.layout().unsqueeze(dim, "stack")));
  }
  return out;
}

void check_cat_out(Where where, const AnyTensor& out, const Shape& shape,
                   std::span<const AnyTensor> tensors) {
  check(out.defined() && out.shape() == shape, where, "expected an output of shape ", shape,
        ", got ", out.shape());
  check_same_device(where, out, tensors[0]);
  check(!out.layout().overlaps_itself(), where,
        "expected an output whose elements do not overlap, got ", out.layout());
}

std::vector<int64_t> split_sizes(int64_t total, int64_t size) {
  check(size > 0 || (size == 0 && total == 0), "split", "expected a size > 0, got ", size);
  std::vector<int64_t> out;
  for (int64_t start = 0; start < total; start += size)
    out.push_back(std::min(size, total - start));
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<int64_t> chunk_sizes(int64_t total, int64_t chunks) {
  check(chunks > 0, "chunk", "expected at least one chunk, got ", chunks);
  return split_sizes(total, std::max<int64_t>((total - 1) / chunks + 1, 1));
}

void check_split(const Shape& shape, int dim, std::span<const int64_t> sizes) {
  int64_t sum = 0;
  bool valid = !sizes.empty();
  for (const int64_t n : sizes) valid = valid && n >= 0 && !__builtin_add_overflow(sum, n, &sum);
  std::string text;
  if (!valid || sum != shape[dim])
    for (const int64_t n : sizes) text += concat(text.empty() ? "" : ", ", n);
  check(valid && sum == shape[dim], "split", "expected sizes that add up to ", shape[dim],
        " of dimension ", dim, " of shape ", shape, ", got (", text, ")");
}

}  // namespace gable::detail
