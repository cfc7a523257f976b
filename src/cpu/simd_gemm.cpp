// SPDX-License-Identifier: Apache-2.0
// Packed float gemm: blocks of a and panels of b over the micro-kernel.
#include "simd.hpp"

#ifdef GABLE_HAS_HIGHWAY

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd_gemm.cpp"
#include <hwy/foreach_target.h>

#include <cstring>

#include "gable/core/parallel.hpp"
#include "scratch.hpp"
#include "simd_kernel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace gable::cpu::simd::HWY_NAMESPACE {
namespace {

constexpr int64_t kBlockRows = 96;    // of a: with kDepth, 144 KB of L2
constexpr int64_t kBlockCols = 1024;  // of b: with kDepth, 1.5 MB of L3

// Where the micro-kernel finds rows [i, i + 6) of the current block of a.
struct RowsOfA {
  const float* data;
  int64_t rs;
  int64_t step;
  bool panels;  // k-major panels of 6 rows, rs is a panel's size
  [[nodiscard]] const float* row(int64_t i, int64_t r) const {
    return panels ? data + i / kRows * rs + r : data + (i + r) * rs;
  }
};

// Row-major a with few columns of b to multiply is read in place; otherwise its block is copied,
// since rows a power of two apart would fall into the same cache sets.
RowsOfA load_a(const Matrix<const float>& a, int64_t rows, int64_t depth, int64_t n, float* to) {
  if (a.cs == 1 && n <= 64) return {a.data, a.rs, 1, false};
  if (a.cs == 1) {
    const int64_t pitch = depth + 16;
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(to + i * pitch, a.data + i * a.rs, static_cast<size_t>(depth) * sizeof(float));
    return {to, pitch, 1, false};
  }
  for (int64_t i = 0; i < rows; i += kRows) {
    float* panel = to + i * depth;
    const float* from = a.data + i * a.rs;
    const int64_t count = std::min(kRows, rows - i);
    if (a.rs == 1 && count == kRows) {
      for (int64_t k = 0; k < depth; ++k)
        std::memcpy(panel + k * kRows, from + k * a.cs, kRows * sizeof(float));
      continue;
    }
    for (int64_t k = 0; k < depth; ++k)
      for (int64_t r = 0; r < kRows; ++r)
        panel[k * kRows + r] = from[std::min(r, count - 1) * a.rs + k * a.cs];
  }
  return {to, depth * kRows, kRows, true};
}

HWY_ATTR void run_block(const GemmProblem& p, const RowsOfA& a, int64_t i0, int64_t rows,
                        int64_t j0, int64_t cols, int64_t depth, const float* packed,
                        const float* starts) {
  const int64_t width = panel_width();
  for (int64_t j = 0; j < cols; j += width)
    for (int64_t i = 0; i < rows; i += kRows) {
      const float* from[kRows];
      float* to[kRows];
      const int64_t count = std::min(kRows, rows - i);
      for (int64_t r = 0; r < kRows; ++r) {
        const int64_t row = std::min(r, count - 1);
        from[r] = a.row(i, row);
        to[r] = p.c.data + (i0 + i + row) * p.c.rs;
      }
      run_tile({from, 1, 0, depth, a.step, packed + j * depth, to, j0 + j, count,
                std::min(width, cols - j), starts == nullptr ? nullptr : starts + j});
    }
}

// One thread's part of c: rows [i0, i1), columns [j0, j1).
HWY_ATTR void run_part(const GemmProblem& p, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
  const int64_t width = panel_width();
  const int64_t depth_max = std::min(p.k, kDepth);
  const int64_t cols_max = std::min(round_up(j1 - j0, width), kBlockCols);
  const Scratch<float> packed(depth_max * cols_max);
  const Scratch<float> block(kBlockRows * (depth_max + 16));
  const Scratch<float> starts(cols_max);
  for (int64_t j = j0; j < j1; j += kBlockCols) {
    const int64_t cols = std::min(kBlockCols, j1 - j);
    for (int64_t c = 0; c < cols_max; ++c)
      starts[c] = p.options.bias != nullptr && c < cols
                      ? p.options.bias[(j + c) * p.options.bias_stride]
                      : 0.0F;
    for (int64_t k = 0; k < p.k; k += kDepth) {
      const int64_t depth = std::min(kDepth, p.k - k);
      for (int64_t c = 0; c < cols; c += width) {
        const Matrix<const float> b = p.b.at(k, j + c);
        pack_panel(b.data, b.rs, b.cs, depth, std::min(width, cols - c), packed.data() + c * depth);
      }
      const bool first = k == 0 && !p.options.accumulate;
      for (int64_t i = i0; i < i1; i += kBlockRows) {
        const int64_t rows = std::min(kBlockRows, i1 - i);
        const RowsOfA a = load_a(p.a.at(i, k), rows, depth, cols, block.data());
        run_block(p, a, i, rows, j, cols, depth, packed.data(), first ? starts.data() : nullptr);
      }
    }
  }
}

HWY_ATTR void run_gemm(const GemmProblem& p) {
  // A grid of parts, one a thread: the longer side is cut, in whole tiles. Any cut gives the
  // same bits.
  const int64_t width = panel_width();
  const int64_t row_tiles = (p.m + kRows - 1) / kRows;
  const int64_t col_tiles = (p.n + width - 1) / width;
  const bool by_rows = p.m * 2 >= p.n;
  const int64_t tiles = by_rows ? row_tiles : col_tiles;
  const int64_t other = by_rows ? col_tiles : row_tiles;
  const int64_t grain = std::max<int64_t>(1, kThreadWork / (other * kRows * width * p.k));
  parallel_for(tiles, grain, [&](int64_t begin, int64_t end) {
    if (by_rows)
      run_part(p, begin * kRows, std::min(p.m, end * kRows), 0, p.n);
    else
      run_part(p, 0, p.m, begin * width, std::min(p.n, end * width));
  });
}

}  // namespace
}  // namespace gable::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <atomic>
#include <cstdlib>
#include <string_view>

namespace gable::cpu::simd {

HWY_EXPORT(run_gemm);

static std::atomic<bool>& switch_state() {
  static std::atomic<bool> on = [] {
    const char* text = std::getenv("GABLE_SIMD");
    return text == nullptr || std::string_view(text) != "off";
  }();
  return on;
}
bool set_enabled(bool on) { return switch_state().exchange(on); }
bool enabled() { return switch_state().load(std::memory_order_relaxed); }

bool gemm(int64_t m, int64_t n, int64_t k, const Matrix<const float>& a,
          const Matrix<const float>& b, const Matrix<float>& c, const GemmOptions<float>& options) {
  // Vectors and slivers waste most of a tile; empty sums have no first block.
  if (!enabled() || m < 4 || n < 6 || k == 0 || c.cs != 1) return false;
  if (options.accumulate && options.bias != nullptr) return false;
  HWY_DYNAMIC_DISPATCH(run_gemm)({m, n, k, a, b, c, options});
  return true;
}

}  // namespace gable::cpu::simd
#endif

#endif  // GABLE_HAS_HIGHWAY
