// SPDX-License-Identifier: Apache-2.0
// parallel_for over index ranges on the library's CPU threads.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace gable {

namespace detail {
using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);
void parallel_for_impl(int64_t n, int64_t grain, RangeFunction f, void* context);
}  // namespace detail

/// Calls f(begin, end) over disjoint ranges that cover [0, n), each of at least `grain` indices
/// where possible, on up to num_threads() threads. Range borders depend on the thread count, so
/// f must not. The first exception is rethrown here. Nested calls run on the calling thread.
template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Function = std::remove_reference_t<F>;
  detail::parallel_for_impl(
      n, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Function*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

/// Threads that CPU kernels use; starts at OMP_NUM_THREADS or the number of cores, and is 1 in
/// builds without OpenMP.
[[nodiscard]] int num_threads();
/// Sets it for the whole process. Throws TypeError for n < 1.
void set_num_threads(int n);

}  // namespace gable
