// SPDX-License-Identifier: Apache-2.0
// Stable sorting of lines.
#include "gable/ops/sort.hpp"

#include <numeric>

#include "kernel.hpp"
#include "lines.hpp"

namespace gable {
namespace {

template <class T>
struct Item {
  T value;
  int64_t position;
};

// A total order, ties by position, so that any sorting algorithm is stable. NaN is last.
template <bool Descending, class T>
bool before(const Item<T>& a, const Item<T>& b) {
  const bool first = Descending ? a.value > b.value : a.value < b.value;
  const bool second = Descending ? b.value > a.value : b.value < a.value;
  if (first != second) return first;
  const bool a_nan = a.value != a.value;
  const bool b_nan = b.value != b.value;
  return a_nan != b_nan ? b_nan : a.position < b.position;
}

template <bool Descending, class T>
void sort_items(Item<T>* items, int64_t n, int64_t k) {
  if (k < n / 4)
    std::partial_sort(items, items + k, items + n, before<Descending, T>);
  else
    std::sort(items, items + n, before<Descending, T>);
}

}  // namespace

template <class T>
static void kernel(const SortArgs<T>& a) {
  using V = Compute<T>;
  // Lines are enumerated over shapes without dim, so that x may be longer than the outputs.
  const Layout x = cpu::without_dim(a.x.layout, a.dim);
  const Layout values = cpu::without_dim(a.values.layout, a.dim);
  const Layout indices = cpu::without_dim(a.indices.layout, a.dim);
  const StridedLoop<3> loop({&x, &values, &indices});
  const auto steps = loop.row_strides();
  const int64_t n = a.x.size(a.dim);
  const int64_t k = a.values.size(a.dim);
  const int64_t grain = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, n));
  loop.parallel(grain, [&](const auto& at, int64_t count) {
    const cpu::Scratch<Item<V>> items(n);
    for (int64_t line = 0; line < count; ++line) {
      const T* from = a.x.data + at[0] + line * steps[0];
      for (int64_t i = 0; i < n; ++i) items[i] = {convert<V>(from[i * a.x.stride(a.dim)]), i};
      if (a.descending)
        sort_items<true>(items.data(), n, k);
      else
        sort_items<false>(items.data(), n, k);
      T* value = a.values.data + at[1] + line * steps[1];
      int64_t* index = a.indices.data + at[2] + line * steps[2];
      for (int64_t i = 0; i < k; ++i) {
        value[i * a.values.stride(a.dim)] = from[items[i].position * a.x.stride(a.dim)];
        index[i * a.indices.stride(a.dim)] = items[i].position;
      }
    }
  });
}
GABLE_CPU_KERNEL_ALL(SortArgs)

}  // namespace gable
