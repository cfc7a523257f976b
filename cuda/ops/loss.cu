// SPDX-License-Identifier: Apache-2.0
// Cross-entropy: one pass over the logits forward, one backward.
#include "gable/ops/loss.hpp"

#include "kernel.hpp"
#include "reduce_driver.cuh"
#include "softmax_lines.cuh"

namespace gable {
namespace cuda {
namespace {

// What every line of C classes shares. Labels outside [0, C) count as ignored: they are reported
// by check_indices.
template <class T>
struct ClassLines {
  const T* x;
  const int64_t* targets;
  const Compute<T>* weight;  // null: 1
  int64_t x_step;
  int64_t classes;
  int64_t ignore_index;
  double smoothing;
  double hard;  // 1 - s
  double soft;  // s / C

  ClassLines(const TensorView<const T>& logits, const TensorView<const int64_t>& labels,
             const TensorView<const Compute<T>>& weights, int64_t ignore, double s)
      : x(logits.data),
        targets(labels.data),
        weight(weights.data),
        x_step(logits.stride(1)),
        classes(logits.size(1)),
        ignore_index(ignore),
        smoothing(s),
        hard(1 - s),
        soft(classes > 0 ? s / static_cast<double>(classes) : 0) {}
  __device__ __forceinline__ double weight_of(int64_t c) const {
    return weight != nullptr ? static_cast<double>(weight[c]) : 1;
  }
  __device__ __forceinline__ bool counts(int64_t t) const {
    return t != ignore_index && t >= 0 && t < classes;
  }
  template <int V>
  __device__ __forceinline__ Pack<T, V> load(const T* line, int64_t c) const {
    return *reinterpret_cast<const Pack<T, V>*>(line + (V > 1 ? c : c * x_step));
  }
};

// What a line comes to.
template <class T>
struct LineSum {
  ExpSum<T, true> exps;
  double smooth = 0;  // sum_c w[c] x[c]
  double total = 0;   // sum_c w[c]
};
template <class T>
struct JoinLineSums {
  __device__ __forceinline__ LineSum<T> operator()(const LineSum<T>& a, const LineSum<T>& b) const {
    return {a.exps.with(b.exps), a.smooth + b.smooth, a.total + b.total};
  }
};

/// The loss and the weight of a position.
struct LossTerm {
  double loss;
  double weight;
};

// Sums terms; writes the loss and the factor that its gradient takes.
template <class C>
struct LossPolicy {
  using Value = LossTerm;
  using State = LossTerm;
  static constexpr int kRows = 1;
  static constexpr int kColumns = 1;
  C* loss;
  double* scale;
  bool mean;

  __device__ __forceinline__ State init() const { return {0, 0}; }
  __device__ __forceinline__ double shift(int64_t) const { return 0; }
  __device__ __forceinline__ State combine(const State& a, const State& b) const {
    return {a.loss + b.loss, a.weight + b.weight};
  }
  template <int N>
  __device__ __forceinline__ void add(State& state, const Pack<LossTerm, N>& pack, int64_t, int64_t,
                                      double) const {
#pragma unroll
    for (int i = 0; i < N; ++i) state = combine(state, pack.values[i]);
  }
  __device__ __forceinline__ void write(const State& state, int64_t, double) const {
    const double factor = !mean ? 1 : state.weight > 0 ? 1 / state.weight : 0;
    *scale = factor;
    *loss = static_cast<C>(factor == 0 ? 0 : state.loss * factor);
  }
};

// --- kernels

/// Writes lse, and each position's term, or its loss if `losses` is not null. Rows are x, targets,
/// lse.
template <class T, int V>
__global__ void __launch_bounds__(kLineThreads)
    cross_entropy_kernel(const ClassLines<T> a, const StridedIndex<3> lines, const LineSplit split,
                         double* lse, double* scale, LossTerm* terms, Compute<T>* losses) {
  const LinePlace place(split);
  const bool active = place.line < lines.count();
  const Offsets<3> at = active ? lines.offsets(place.line) : Offsets<3>{};
  const T* x = a.x + at.at[0];
  const bool smooth = a.smoothing != 0;
  LineSum<T> sum;
  if (active) {
#pragma unroll 2
    for (int64_t c = place.first * V; c < a.classes; c += place.stride * V) {
      const Pack<T, V> pack = a.template load<V>(x, c);
      sum.exps.add(pack);
      if (smooth) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          const double w = a.weight_of(c + v);
          sum.smooth += w * static_cast<double>(widen(pack.values[v]));
          sum.total += w;
        }
      }
    }
  }
  if (smooth)
    sum = line_reduce(sum, JoinLineSums<T>{}, split);
  else
    sum.exps = line_reduce(
        sum.exps, [](const auto& p, const auto& q) { return p.with(q); }, split);
  if (losses != nullptr && blockIdx.x == 0 && threadIdx.x == 0) *scale = 1;
  if (!active || place.first != 0) return;
  const double log_sum =
      math::log(sum.exps.sum) + static_cast<double>(sum.exps.shift_of(sum.exps.top));
  lse[at.at[2]] = log_sum;
  const int64_t t = a.targets[at.at[1]];
  LossTerm term = {0, 0};
  if (a.counts(t)) {
    term.weight = a.weight_of(t);
    const auto own = static_cast<double>(widen(x[t * a.x_step]));
    term.loss = a.hard * term.weight * (log_sum - own);
    if (smooth) term.loss += a.soft * (sum.total * log_sum - sum.smooth);
  }
  if (losses != nullptr)
    losses[at.at[2]] = static_cast<Compute<T>>(term.loss);
  else
    terms[at.at[2]] = term;
}

/// Rows are dx, x, targets, lse, dy.
template <class T, int V>
__global__ void __launch_bounds__(kLineThreads)
    cross_entropy_backward_kernel(const ClassLines<T> a, const StridedIndex<5> lines,
                                  const LineSplit split, T* dx, const int64_t dx_step,
                                  const double* lse, const Compute<T>* dy, const double* scale) {
  using C = Compute<T>;
  const LinePlace place(split);
  const bool active = place.line < lines.count();
  const Offsets<5> at = active ? lines.offsets(place.line) : Offsets<5>{};
  const T* x = a.x + at.at[1];
  const bool smooth = a.smoothing != 0;
  double total = static_cast<double>(a.classes);
  if (smooth && a.weight != nullptr) {  // on all threads: the sum needs every one
    total = 0;
    for (int64_t c = place.first; c < a.classes; c += place.stride) total += a.weight_of(c);
    total = line_reduce(total, Add{}, split);
  }
  if (!active) return;
  const int64_t t = a.targets[at.at[2]];
  const bool counts = a.counts(t);
  const auto shift = static_cast<C>(lse[at.at[3]]);
  double gradient = 0;
  C factor = 0;     // of the probabilities
  C own = 0;        // what the target's class gets less
  double rest = 0;  // what any class gets less, times its weight
  if (counts) {
    gradient = static_cast<double>(dy[at.at[4]]) * *scale;
    const double w = a.weight_of(t);
    factor = static_cast<C>(gradient * (a.hard * w + a.soft * total));
    own = static_cast<C>(gradient * a.hard * w);
    rest = gradient * a.soft;
  }
  T* to = dx + at.at[0];
#pragma unroll 2
  for (int64_t c = place.first * V; c < a.classes; c += place.stride * V) {
    Pack<T, V> pack = a.template load<V>(x, c);
#pragma unroll
    for (int v = 0; v < V; ++v) {
      C d = exp_of<T>(static_cast<C>(widen(pack.values[v])) - shift) * factor;
      if (c + v == t) d -= own;
      if (smooth) d -= static_cast<C>(rest * a.weight_of(c + v));
      pack.values[v] = narrow<T>(counts ? d : C(0));
    }
    *reinterpret_cast<Pack<T, V>*>(to + (V > 1 ? c : c * dx_step)) = pack;
  }
}

Layout without_classes(const Layout& layout) {
  return sub_layout(layout, [](int d) { return d != 1; });
}

}  // namespace
}  // namespace cuda

template <class T>
static void kernel(const CrossEntropyArgs<T>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  const Layout x = without_classes(args.x.layout);
  const StridedLoop<3> lines({&x, &args.targets.layout, &args.lse.layout});
  const ClassLines<T> classes(args.x, args.targets, args.weight, args.ignore_index, args.smoothing);
  const bool none = args.reduction == Reduction::none;
  const int64_t count = args.lse.numel();
  const Scratch<LossTerm> terms(none ? 0 : count, stream);
  constexpr int width = kPackSize<T>;
  auto run = [&]<int V>(const LineSplit& split) {
    launch(stream, {blocks_for(count, split.lines()), kLineThreads}, cross_entropy_kernel<T, V>,
           classes, StridedIndex<3>(lines), split, args.lse.data, args.scale.data, terms.data(),
           none ? args.loss.data : nullptr);
  };
  if (side_by_side(lines, classes.x_step))
    run.template operator()<1>(LineSplit::across(classes.classes));
  else if (classes.x_step == 1 && classes.classes % width == 0 &&
           rows_start_packed(lines, 0, args.x.data, sizeof(T), width))
    run.template operator()<width>(LineSplit::along(classes.classes / width));
  else
    run.template operator()<1>(LineSplit::along(classes.classes));
  if (none) return;
  const Layout all(Shape{1, count});
  const Layout one(Shape{1, 1});
  reduce(
      stream, ReducePlan(all, one, one), terms.data(),
      LossPolicy<Compute<T>>{args.loss.data, args.scale.data, args.reduction == Reduction::mean});
}

template <class T>
static void kernel(const CrossEntropyBackwardArgs<T>& args, const Stream& stream) {
  using namespace cuda;  // NOLINT
  if (args.dx.numel() == 0) return;
  const Layout dx = without_classes(args.dx.layout);
  const Layout x = without_classes(args.x.layout);
  const StridedLoop<5> lines({&dx, &x, &args.targets.layout, &args.lse.layout, &args.dy.layout});
  const ClassLines<T> classes(args.x, args.targets, args.weight, args.ignore_index, args.smoothing);
  const int64_t dx_step = args.dx.stride(1);
  constexpr int width = kPackSize<T>;
  auto run = [&]<int V>(const LineSplit& split) {
    launch(stream, {blocks_for(lines.numel(), split.lines()), kLineThreads},
           cross_entropy_backward_kernel<T, V>, classes, StridedIndex<5>(lines), split,
           args.dx.data, dx_step, args.lse.data, args.dy.data, args.scale.data);
  };
  if (side_by_side(lines, dx_step))
    run.template operator()<1>(LineSplit::across(classes.classes));
  else if (dx_step == 1 && classes.x_step == 1 && classes.classes % width == 0 &&
           rows_start_packed(lines, 0, args.dx.data, sizeof(T), width) &&
           rows_start_packed(lines, 1, args.x.data, sizeof(T), width))
    run.template operator()<width>(LineSplit::along(classes.classes / width));
  else
    run.template operator()<1>(LineSplit::along(classes.classes));
}

}  // namespace gable

GABLE_CUDA_KERNEL_FLOATS(CrossEntropyArgs)
GABLE_CUDA_KERNEL_FLOATS(CrossEntropyBackwardArgs)
