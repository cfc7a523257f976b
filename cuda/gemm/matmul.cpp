// SPDX-License-Identifier: Apache-2.0
// matmul over gemm: operands that the library cannot read are copied, batches are merged.
#include "gable/ops/matmul.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "gable/memory/copy_stats.hpp"
#include "gemm/gemm.hpp"
#include "kernel.hpp"
#include "runtime/scratch.hpp"
#include "runtime/strided_copy.hpp"

namespace gable {

namespace cuda {
namespace {

bool fits(const Layout& x) {
  return leading(x.size(-2), x.size(-1), x.stride(-2), x.stride(-1)).has_value();
}

// An operand, or where its strides do not fit a dense copy of it in scratch memory; broadcast
// dimensions are copied once and stay broadcast.
template <class T>
class Operand {
 public:
  Operand(const TensorView<const T>& x, const Stream& stream) : view_(x) {
    if (std::is_integral_v<T> || fits(x.layout)) return;
    Layout distinct = x.layout;
    for (int d = 0; d < x.rank() - 2; ++d)
      if (x.stride(d) == 0) distinct = distinct.narrow(d, 0, 1);
    memory_.emplace(distinct.numel(), stream);
    const Layout dense(distinct.shape());
    detail::count_hidden_copy(false);
    strided_copy(any_view(TensorView<T>{memory_->data(), dense}),
                 any_view(TensorView<const T>{x.data, distinct}), stream);
    view_ = {memory_->data(), dense.expand(x.shape())};
  }
  [[nodiscard]] const TensorView<const T>& view() const { return view_; }

 private:
  TensorView<const T> view_;
  std::optional<Scratch<T>> memory_;
};

// One batch dimension, or several that are one stride apart in all operands.
struct BatchDim {
  int64_t size = 1;
  int64_t a = 0;
  int64_t b = 0;
  int64_t out = 0;
};

// Batch dimensions, outermost first.
struct Batch {
  BatchDim dims[kMaxRank];
  int count = 0;

  void erase(int at) {
    for (int d = at; d + 1 < count; ++d) dims[d] = dims[d + 1];
    --count;
  }
};

Batch batch_of(const Layout& a, const Layout& b, const Layout& out) {
  Batch batch;
  for (int d = 0; d < out.rank() - 2; ++d) {
    if (out.shape()[d] == 1) continue;
    const BatchDim dim{out.shape()[d], a.strides()[d], b.strides()[d], out.strides()[d]};
    if (batch.count > 0) {
      BatchDim& last = batch.dims[batch.count - 1];
      if (last.a == dim.size * dim.a && last.b == dim.size * dim.b &&
          last.out == dim.size * dim.out) {
        last = {last.size * dim.size, dim.a, dim.b, dim.out};
        continue;
      }
    }
    batch.dims[batch.count++] = dim;
  }
  return batch;
}

// Folds the inner batch dimensions into the rows where b is shared and the rows of a and out
// continue: linear layers become one product.
template <class T, class Out>
void fold_rows(Gemm<T, Out>& g, Batch& batch) {
  while (batch.count > 0) {
    const BatchDim& dim = batch.dims[batch.count - 1];
    if (dim.b != 0) return;
    const bool continues = g.m == 1 || (dim.a == g.m * g.a.rs && dim.out == g.m * g.out.rs);
    const int64_t row_a = g.m == 1 ? dim.a : g.a.rs;
    const int64_t row_out = g.m == 1 ? dim.out : g.out.rs;
    const int64_t m = g.m * dim.size;
    if (!continues || !leading(m, g.k, row_a, g.a.cs) || !leading(m, g.n, row_out, g.out.cs))
      return;
    g.m = m;
    g.a.rs = row_a;
    g.out.rs = row_out;
    --batch.count;
  }
}

// Takes out the longest dimension that the library can step through.
BatchDim take_steps(Batch& batch) {
  int best = -1;
  for (int d = 0; d < batch.count; ++d) {
    const BatchDim& dim = batch.dims[d];
    if (dim.a < 0 || dim.b < 0 || dim.out <= 0) continue;
    if (best < 0 || dim.size > batch.dims[best].size) best = d;
  }
  if (best < 0) return {};
  const BatchDim dim = batch.dims[best];
  batch.erase(best);
  return dim;
}

template <class T, class Out>
void multiply(const TensorView<Out>& out, const TensorView<const T>& a,
              const TensorView<const T>& b, const TensorView<const T>& bias, const Stream& stream) {
  const auto matrix = [](const auto& view) {
    return Matrix<std::remove_pointer_t<decltype(view.data)>>{view.data, view.layout.stride(-2),
                                                              view.layout.stride(-1), 0};
  };
  Gemm<T, Out> g;
  g.m = out.layout.size(-2);
  g.n = out.layout.size(-1);
  g.k = a.layout.size(-1);
  g.a = matrix(a);
  g.b = matrix(b);
  g.out = matrix(out);
  if (bias.data != nullptr) g.bias = {bias.data, bias.stride(0), 0};
  Batch batch = batch_of(a.layout, b.layout, out.layout);
  if (g.k > 0) fold_rows(g, batch);
  const BatchDim steps = take_steps(batch);
  g.batch = steps.size;
  g.a.step = steps.a;
  g.b.step = steps.b;
  g.out.step = steps.out;
  int64_t products = 1;
  for (int d = 0; d < batch.count; ++d) products *= batch.dims[d].size;
  for (int64_t i = 0; i < products; ++i) {
    Gemm<T, Out> part = g;
    int64_t rest = i;
    for (int d = batch.count - 1; d >= 0; --d) {
      const BatchDim& dim = batch.dims[d];
      const int64_t coordinate = rest % dim.size;
      rest /= dim.size;
      part.a.data += coordinate * dim.a;
      part.b.data += coordinate * dim.b;
      part.out.data += coordinate * dim.out;
    }
    gemm(part, stream);
  }
}

}  // namespace
}  // namespace cuda

template <class T, class Out>
static void kernel(const MatmulArgs<T, Out>& args, const Stream& stream) {
  if (args.out.numel() == 0) return;
  if (args.a.layout.size(-1) == 0) {  // sums of nothing
    cuda::multiply<T, Out>(args.out, args.a, args.b, args.bias, stream);
    return;
  }
  const cuda::Operand<T> a(args.a, stream);
  const cuda::Operand<T> b(args.b, stream);
  if (std::is_integral_v<T> || cuda::fits(args.out.layout)) {
    cuda::multiply<T, Out>(args.out, a.view(), b.view(), args.bias, stream);
    return;
  }
  const cuda::Scratch<Out> memory(args.out.numel(), stream);
  const TensorView<Out> dense{memory.data(), Layout(args.out.shape())};
  cuda::multiply<T, Out>(dense, a.view(), b.view(), args.bias, stream);
  detail::count_hidden_copy(false);
  cuda::strided_copy(cuda::any_view(args.out), cuda::any_view(dense), stream);
}

GABLE_CUDA_KERNEL_NUMERIC(MatmulArgs)
GABLE_CUDA_KERNEL(MatmulArgs<half, float>)
GABLE_CUDA_KERNEL(MatmulArgs<bfloat16, float>)

}  // namespace gable
