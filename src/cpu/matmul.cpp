// SPDX-License-Identifier: Apache-2.0
// Matrix products: batches, merged into longer matrices where strides allow it, over gemm.
#include "gable/ops/matmul.hpp"

#include "gable/core/parallel.hpp"
#include "gemm.hpp"
#include "kernel.hpp"

namespace gable {

namespace {

// A batch of products after merging: rows, their strides, and what is left to loop over.
struct Batch {
  int64_t m;
  int64_t row_a;
  int64_t row_out;
  int64_t count = 1;
  Dims sizes;
  Dims a;
  Dims b;
  Dims out;
};

// Folds batch dimensions, innermost first, into the rows where b is shared and the rows of a and
// out continue: linear layers become one product.
Batch merge_batch(const Layout& a, const Layout& b, const Layout& out) {
  Batch batch{out.size(-2), a.stride(-2), out.stride(-2), 1, {}, {}, {}, {}};
  bool merging = true;
  for (int d = out.rank() - 3; d >= 0; --d) {
    const int64_t size = out.shape()[d];
    if (size == 1) continue;
    merging = merging && b.strides()[d] == 0 &&
              (batch.m == 1 || (a.strides()[d] == batch.m * batch.row_a &&
                                out.strides()[d] == batch.m * batch.row_out));
    if (merging) {
      if (batch.m == 1) {
        batch.row_a = a.strides()[d];
        batch.row_out = out.strides()[d];
      }
      batch.m *= size;
      continue;
    }
    batch.sizes.push_back(size);
    batch.a.push_back(a.strides()[d]);
    batch.b.push_back(b.strides()[d]);
    batch.out.push_back(out.strides()[d]);
    batch.count *= size;
  }
  return batch;
}

}  // namespace

template <class T, class Out>
static void kernel(const MatmulArgs<T, Out>& args) {
  const int64_t n = args.out.layout.size(-1);
  const int64_t k = args.a.layout.size(-1);
  const Batch batch = merge_batch(args.a.layout, args.b.layout, args.out.layout);
  const cpu::Matrix<const T> a{args.a.data, batch.row_a, args.a.layout.stride(-1)};
  const cpu::Matrix<const T> b{args.b.data, args.b.layout.stride(-2), args.b.layout.stride(-1)};
  const cpu::Matrix<Out> c{args.out.data, batch.row_out, args.out.layout.stride(-1)};
  cpu::GemmOptions<T> options;
  if (args.bias.data != nullptr) {
    options.bias = args.bias.data;
    options.bias_stride = args.bias.stride(0);
  }
  // Products one after another, each threaded, unless there are enough of them to share out.
  const int64_t grain = batch.count >= 2L * num_threads() ? 1 : batch.count;
  parallel_for(batch.count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t rest = i;
      int64_t at_a = 0;
      int64_t at_b = 0;
      int64_t at_out = 0;
      for (int d = 0; d < batch.sizes.size(); ++d) {
        const int64_t coordinate = rest % batch.sizes[d];
        rest /= batch.sizes[d];
        at_a += coordinate * batch.a[d];
        at_b += coordinate * batch.b[d];
        at_out += coordinate * batch.out[d];
      }
      cpu::gemm<T, Out>(batch.m, n, k, {a.data + at_a, a.rs, a.cs}, {b.data + at_b, b.rs, b.cs},
                        {c.data + at_out, c.rs, c.cs}, options);
    }
  });
}

#define GABLE_MATMUL(T, Out) template void cpu::run<MatmulArgs<T, Out>>(const MatmulArgs<T, Out>&);
GABLE_CPU_KERNEL_NUMERIC(MatmulArgs)
GABLE_MATMUL(half, float)
GABLE_MATMUL(bfloat16, float)

}  // namespace gable
