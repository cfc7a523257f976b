// SPDX-License-Identifier: Apache-2.0
// The float micro-kernel and its packing; included once for each instruction set.
//
// A tile of c is 6 rows by two vectors: 12 sums, 2 vectors of b and a broadcast of a fit the 16
// registers of AVX2, and 12 independent sums hide the latency of two FMA units. b is packed into
// panels of two vectors; a is read where it lies, through one pointer a row and tap, so that a
// convolution needs no im2col buffer ("indirect" convolution, Dukhan 2019, arXiv 1907.02129).
// Every element of c is one sum in order of k, so no split over rows, columns or threads changes
// a bit.
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#if defined(GABLE_SIMD_KERNEL_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef GABLE_SIMD_KERNEL_INL
#undef GABLE_SIMD_KERNEL_INL
#else
#define GABLE_SIMD_KERNEL_INL
#endif

HWY_BEFORE_NAMESPACE();
namespace gable::cpu::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kRows = 6;
// Sums over k are cut so that a panel of b stays in L1 beside the rows of a.
constexpr int64_t kDepth = 384;

// Multiply-adds that a thread should get at least: some 20 us, beside a few for waking it.
constexpr int64_t kThreadWork = int64_t{1} << 20;

HWY_INLINE int64_t panel_width() { return 2 * static_cast<int64_t>(hn::Lanes(D())); }
HWY_INLINE int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// One call of the micro-kernel: c[r][0, cols) = start + sum over taps and k of
/// a[tap * 6 + r][offset + k * step] * b.
struct Tile {
  const float* const* a;  // taps x 6 pointers; rows beyond `rows` point to anything readable
  int64_t taps;
  int64_t offset;
  int64_t depth;  // of one tap
  int64_t step;
  const float* b;  // taps * depth rows of a panel
  float* const* c;
  int64_t c_offset;
  int64_t rows;
  int64_t cols;
  const float* start;  // a panel's width of values, or null: add to c
};

#define GABLE_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)

inline HWY_ATTR void run_tile(const Tile& t) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const bool whole = t.rows == kRows && t.cols == 2 * lanes;
#define X(r) V p##r, q##r;
  GABLE_ROWS(X)
#undef X
  HWY_ALIGN float edge[kRows * 2 * HWY_MAX_BYTES / sizeof(float)];
  if (t.start != nullptr) {
    const V p = hn::LoadU(d, t.start);
    const V q = hn::LoadU(d, t.start + lanes);
#define X(r) p##r = p, q##r = q;
    GABLE_ROWS(X)
#undef X
  } else if (whole) {
#define X(r)                                \
  p##r = hn::LoadU(d, t.c[r] + t.c_offset); \
  q##r = hn::LoadU(d, t.c[r] + t.c_offset + lanes);
    GABLE_ROWS(X)
#undef X
  } else {
    std::fill_n(edge, kRows * 2 * lanes, 0.0F);
    for (int64_t r = 0; r < t.rows; ++r)
      for (int64_t j = 0; j < t.cols; ++j) edge[r * 2 * lanes + j] = t.c[r][t.c_offset + j];
#define X(r)                                 \
  p##r = hn::LoadU(d, edge + r * 2 * lanes); \
  q##r = hn::LoadU(d, edge + r * 2 * lanes + lanes);
    GABLE_ROWS(X)
#undef X
  }
  const float* HWY_RESTRICT b = t.b;
  const int64_t stop = t.depth * t.step;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const float* const* a = t.a + tap * kRows;
#define X(r) const float* HWY_RESTRICT a##r = a[r] + t.offset;
    GABLE_ROWS(X)
#undef X
    for (int64_t k = 0; k != stop; k += t.step) {
      const V b0 = hn::Load(d, b);
      const V b1 = hn::Load(d, b + lanes);
      b += 2 * lanes;
#define X(r)                         \
  {                                  \
    const V v = hn::Set(d, a##r[k]); \
    p##r = hn::MulAdd(v, b0, p##r);  \
    q##r = hn::MulAdd(v, b1, q##r);  \
  }
      GABLE_ROWS(X)
#undef X
    }
  }
  if (whole) {
#define X(r)                                \
  hn::StoreU(p##r, d, t.c[r] + t.c_offset); \
  hn::StoreU(q##r, d, t.c[r] + t.c_offset + lanes);
    GABLE_ROWS(X)
#undef X
    return;
  }
#define X(r)                                 \
  hn::StoreU(p##r, d, edge + r * 2 * lanes); \
  hn::StoreU(q##r, d, edge + r * 2 * lanes + lanes);
  GABLE_ROWS(X)
#undef X
  for (int64_t r = 0; r < t.rows; ++r)
    for (int64_t j = 0; j < t.cols; ++j) t.c[r][t.c_offset + j] = edge[r * 2 * lanes + j];
}

/// Packs `rows` x `cols` (cols <= panel) of row-major b, rows `stride` apart, zero-filled.
inline HWY_ATTR void pack_rows(const float* b, int64_t stride, int64_t rows, int64_t cols,
                               float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (cols == 2 * lanes) {
    for (int64_t k = 0; k < rows; ++k, b += stride, to += 2 * lanes) {
      hn::Store(hn::LoadU(d, b), d, to);
      hn::Store(hn::LoadU(d, b + lanes), d, to + lanes);
    }
    return;
  }
  for (int64_t k = 0; k < rows; ++k, b += stride, to += 2 * lanes) {
    for (int64_t j = 0; j < cols; ++j) to[j] = b[j];
    for (int64_t j = cols; j < 2 * lanes; ++j) to[j] = 0;
  }
}

/// The same for a b whose columns are contiguous, `stride` apart: transposes 4 x 4 at a time.
inline HWY_ATTR void pack_columns(const float* b, int64_t stride, int64_t rows, int64_t cols,
                                  float* to) {
  const int64_t width = panel_width();
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::FixedTag<float, 4> d4;
  const hn::FixedTag<double, 2> d2;
  for (; j + 4 <= cols; j += 4) {
    const float* from = b + j * stride;
    int64_t k = 0;
    for (; k + 4 <= rows; k += 4) {
      const auto r0 = hn::LoadU(d4, from + k);
      const auto r1 = hn::LoadU(d4, from + stride + k);
      const auto r2 = hn::LoadU(d4, from + 2 * stride + k);
      const auto r3 = hn::LoadU(d4, from + 3 * stride + k);
      const auto l01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
      const auto u01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
      const auto l23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto u23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      float* out = to + k * width + j;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, l01, l23)), d4, out);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, l01, l23)), d4, out + width);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d2, u01, u23)), d4, out + 2 * width);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d2, u01, u23)), d4, out + 3 * width);
    }
    for (; k < rows; ++k)
      for (int64_t i = 0; i < 4; ++i) to[k * width + j + i] = from[i * stride + k];
  }
#endif
  for (; j < cols; ++j)
    for (int64_t k = 0; k < rows; ++k) to[k * width + j] = b[j * stride + k];
  for (; j < width; ++j)
    for (int64_t k = 0; k < rows; ++k) to[k * width + j] = 0;
}

/// Any strides.
inline HWY_ATTR void pack_panel(const float* b, int64_t rs, int64_t cs, int64_t rows, int64_t cols,
                                float* to) {
  if (cs == 1) return pack_rows(b, rs, rows, cols, to);
  if (rs == 1) return pack_columns(b, cs, rows, cols, to);
  const int64_t width = panel_width();
  for (int64_t k = 0; k < rows; ++k, to += width) {
    for (int64_t j = 0; j < cols; ++j) to[j] = b[k * rs + j * cs];
    for (int64_t j = cols; j < width; ++j) to[j] = 0;
  }
}

/// Rows at from[k] + offset.
inline HWY_ATTR void pack_gathered(const float* const* from, int64_t offset, int64_t rows,
                                   int64_t cols, float* to) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t k = 0; k < rows; ++k, to += 2 * lanes) {
    const float* b = from[k] + offset;
    if (cols == 2 * lanes) {
      hn::Store(hn::LoadU(d, b), d, to);
      hn::Store(hn::LoadU(d, b + lanes), d, to + lanes);
    } else {
      for (int64_t j = 0; j < cols; ++j) to[j] = b[j];
      for (int64_t j = cols; j < 2 * lanes; ++j) to[j] = 0;
    }
  }
}

#undef GABLE_ROWS

}  // namespace gable::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
