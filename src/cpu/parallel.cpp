// SPDX-License-Identifier: Apache-2.0
// parallel_for on OpenMP; serial without it.
#include "gable/core/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>

#include "gable/core/error.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace gable {

#ifdef _OPENMP
// 0: OpenMP's own. omp_set_num_threads would set it for the calling thread alone.
static std::atomic<int> chosen_threads{0};
#endif

int num_threads() {
#ifdef _OPENMP
  const int chosen = chosen_threads.load(std::memory_order_relaxed);
  return chosen > 0 ? chosen : omp_get_max_threads();
#else
  return 1;
#endif
}

void set_num_threads(int n) {
  check<TypeError>(n >= 1, "set_num_threads", "expected at least 1 thread, got ", n);
#ifdef _OPENMP
  chosen_threads.store(n, std::memory_order_relaxed);
#endif
}

void detail::parallel_for_impl(int64_t n, int64_t grain, RangeFunction f, void* context) {
  if (n <= 0) return;
#ifdef _OPENMP
  const int64_t ranges = std::min<int64_t>(num_threads(), n / std::max<int64_t>(grain, 1));
  if (ranges > 1 && omp_in_parallel() == 0) {
    std::exception_ptr error;
#pragma omp parallel for num_threads(static_cast <int>(ranges)) schedule(static, 1)
    for (int64_t r = 0; r < ranges; ++r) {
      try {
        f(context, n * r / ranges, n * (r + 1) / ranges);
      } catch (...) {
#pragma omp critical(gable_parallel_for_error)
        if (!error) error = std::current_exception();
      }
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#else
  (void)grain;
#endif
  f(context, 0, n);
}

}  // namespace gable
