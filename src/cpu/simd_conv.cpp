// SPDX-License-Identifier: Apache-2.0
// Convolution straight from channels-last images through the micro-kernel: no im2col buffer.
#include "simd.hpp"

#ifdef GABLE_HAS_HIGHWAY

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd_conv.cpp"
#include <hwy/foreach_target.h>

#include <vector>

#include "conv_walk.hpp"
#include "gable/core/parallel.hpp"
#include "scratch.hpp"
#include "simd_kernel-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace gable::cpu::simd::HWY_NAMESPACE {
namespace {

// A product whose rows of a are found through pointers, one a tap, `channels` values each.
struct Indirect {
  int64_t rows;
  int64_t taps;
  int64_t channels;
  int64_t cols;
  const float* packed;  // panels of taps * channels rows
  const float* starts;  // what each column starts from
};

// `fill(begin, count, a, c)` writes, for rows begin.., a[(i / 6 * taps + tap) * 6 + i % 6] and
// c[i].
template <class Fill>
HWY_ATTR void run_rows(const Indirect& p, int64_t begin, int64_t end, const float** a, float** c,
                       const Fill& fill) {
  const int64_t width = panel_width();
  const int64_t rows = end - begin;
  fill(begin, rows, a, c);
  for (int64_t i = rows; i % kRows != 0; ++i)  // the last tile reads its last row again
    for (int64_t tap = 0; tap < p.taps; ++tap)
      a[(i / kRows * p.taps + tap) * kRows + i % kRows] =
          a[(i / kRows * p.taps + tap) * kRows + (rows - 1) % kRows];
  for (int64_t i = rows; i % kRows != 0; ++i) c[i] = c[rows - 1];
  const int64_t chunks = (p.channels + kDepth - 1) / kDepth;
  const int64_t chunk = chunks == 0 ? 0 : (p.channels + chunks - 1) / chunks;
  const int64_t taps = chunks > 1 ? 1 : std::max<int64_t>(1, kDepth / std::max<int64_t>(1, chunk));
  for (int64_t j = 0; j < p.cols; j += width) {
    const float* panel = p.packed + j * p.taps * p.channels;
    const int64_t cols = std::min(width, p.cols - j);
    const float* start = p.starts + j;
    for (int64_t tap = 0; tap < std::max<int64_t>(1, p.taps); tap += taps)
      for (int64_t at = 0; at < std::max<int64_t>(1, p.channels); at += chunk) {
        const int64_t count = std::min(taps, p.taps - tap);
        const float* b = panel + (tap * p.channels + at) * width;
        for (int64_t i = 0; i < rows; i += kRows)
          run_tile({a + (i / kRows * p.taps + tap) * kRows, count, at,
                    std::min(chunk, p.channels - at), 1, b, c + i, j, std::min(kRows, rows - i),
                    cols, start});
        start = nullptr;
      }
  }
}

template <class Fill>
void run_indirect(const Indirect& p, const Fill& fill) {
  // Blocks of rows whose pixels stay in L2, the same number for every thread.
  const int64_t most =
      std::clamp<int64_t>((192 << 10) / (4 * std::max<int64_t>(1, p.channels)), 48, 480);
  const int64_t work = p.rows * p.taps * p.channels * round_up(p.cols, panel_width());
  const int64_t threads = std::clamp<int64_t>(work / kThreadWork, 1, num_threads());
  const int64_t wanted = (p.rows + most - 1) / most;
  const int64_t blocks = round_up(wanted, threads);
  const int64_t size = round_up((p.rows + blocks - 1) / blocks, kRows);
  const int64_t used = (p.rows + size - 1) / size;
  parallel_for(used, std::max<int64_t>(1, used / threads), [&](int64_t first, int64_t last) {
    std::vector<const float*> a(static_cast<size_t>(size * p.taps));
    std::vector<float*> c(static_cast<size_t>(size));
    for (int64_t block = first; block < last; ++block)
      run_rows(p, block * size, std::min(p.rows, (block + 1) * size), a.data(), c.data(), fill);
  });
}

// Panels of weights that are worth a thread.
int64_t pack_grain(const ConvGeometry& g) {
  const int64_t values = panel_width() * g.taps() * std::max(g.group_in(), g.group_out());
  return std::max<int64_t>(1, 65536 / values);
}

// Bias of one group over whole panels, zero beyond.
void load_starts(const TensorView<const float>& bias, int64_t first, int64_t n, int64_t padded,
                 float* to) {
  for (int64_t i = 0; i < padded; ++i)
    to[i] = bias.data != nullptr && i < n ? bias.data[(first + i) * bias.stride(0)] : 0.0F;
}

bool inside(int64_t i, int64_t size) {
  return static_cast<uint64_t>(i) < static_cast<uint64_t>(size);
}

HWY_ATTR void pack_forward(const float* w, int64_t depth, int64_t n, int64_t begin, int64_t end,
                           float* packed) {
  const int64_t width = panel_width();
  for (int64_t j = begin * width; j < std::min(n, end * width); j += width)
    pack_columns(w + j * depth, depth, depth, std::min(width, n - j), packed + j * depth);
}

HWY_ATTR void run_forward(const Conv2dArgs<float>& args) {
  const ConvGeometry& g = args.g;
  const PixelStrides strides(args.x.layout);
  const int64_t n = g.group_out();
  const int64_t panels = round_up(n, panel_width()) / panel_width();
  const Scratch<float> packed(panels * panel_width() * g.depth());
  const Scratch<float> starts(panels * panel_width());
  const Scratch<float> zeros(g.group_in());
  std::fill_n(zeros.data(), g.group_in(), 0.0F);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* w = args.w.data + group * n * g.depth();
    parallel_for(panels, pack_grain(g), [&](int64_t begin, int64_t end) {
      pack_forward(w, g.depth(), n, begin, end, packed.data());
    });
    load_starts(args.bias, group * n, n, panels * panel_width(), starts.data());
    const float* x = args.x.data + group * g.group_in();
    float* y = args.y.data + group * n;
    run_indirect({g.out_pixels(), g.taps(), g.group_in(), n, packed.data(), starts.data()},
                 [&](int64_t begin, int64_t count, const float** a, float** c) {
                   PixelWalk at(begin, g.out);
                   for (int64_t i = 0; i < count; ++i, at.next()) {
                     c[i] = y + (begin + i) * g.out_channels;
                     const float** to = a + i / kRows * g.taps() * kRows + i % kRows;
                     for (int64_t ky = 0; ky < g.kernel.h; ++ky) {
                       const int64_t v = at.y * g.stride.h - g.pad_top + ky * g.dilation.h;
                       const bool row = inside(v, g.in.h);
                       for (int64_t kx = 0; kx < g.kernel.w; ++kx, to += kRows) {
                         const int64_t u = at.x * g.stride.w - g.pad_left + kx * g.dilation.w;
                         *to = row && inside(u, g.in.w) ? x + strides.at(at.image, v, u)
                                                        : zeros.data();
                       }
                     }
                   }
                 });
  }
}

// A kernel tap of the input gradient: where its output pixel lies relative to the input's place
// in the grid of its phase.
struct PhaseTap {
  int64_t y;
  int64_t x;
  int64_t index;
};

// Input pixels (py + i stride.h, px + j stride.w) read output pixels (i + tap.y, j + tap.x): each
// phase of a strided convolution is a dense one with fewer taps.
std::vector<PhaseTap> taps_of_phase(const ConvGeometry& g, int64_t py, int64_t px) {
  std::vector<PhaseTap> taps;
  for (int64_t ky = 0; ky < g.kernel.h; ++ky)
    for (int64_t kx = 0; kx < g.kernel.w; ++kx) {
      const int64_t y = py + g.pad_top - ky * g.dilation.h;
      const int64_t x = px + g.pad_left - kx * g.dilation.w;
      if (y % g.stride.h == 0 && x % g.stride.w == 0)
        taps.push_back({y / g.stride.h, x / g.stride.w, ky * g.kernel.w + kx});
    }
  return taps;
}

HWY_ATTR void pack_input_grad(const ConvGeometry& g, const float* w,
                              const std::vector<PhaseTap>& taps, int64_t begin, int64_t end,
                              float* packed) {
  const int64_t width = panel_width();
  const int64_t n = g.group_in();
  const int64_t rows = g.group_out();
  float* to = packed + begin * width * static_cast<int64_t>(taps.size()) * rows;
  for (int64_t j = begin * width; j < std::min(n, end * width); j += width)
    for (const PhaseTap& tap : taps) {
      pack_rows(w + tap.index * n + j, g.depth(), rows, std::min(width, n - j), to);
      to += rows * width;
    }
}

HWY_ATTR void run_input_grad(const Conv2dInputGradArgs<float>& args) {
  const ConvGeometry& g = args.g;
  const PixelStrides strides(args.dy.layout);
  const int64_t n = g.group_in();
  const int64_t panels = round_up(n, panel_width()) / panel_width();
  const Scratch<float> packed(panels * panel_width() * g.taps() * g.group_out());
  const Scratch<float> starts(panels * panel_width());
  const Scratch<float> zeros(g.group_out());
  std::fill_n(zeros.data(), g.group_out(), 0.0F);
  for (int64_t group = 0; group < g.groups; ++group) {
    const float* w = args.w.data + group * g.group_out() * g.depth();
    load_starts(args.bias, group * n, n, panels * panel_width(), starts.data());
    const float* dy = args.dy.data + group * g.group_out();
    float* dx = args.dx.data + group * n;
    for (int64_t phase = 0; phase < g.stride.h * g.stride.w; ++phase) {
      const int64_t py = phase / g.stride.w;
      const int64_t px = phase % g.stride.w;
      if (py >= g.in.h || px >= g.in.w) continue;
      const Size2d grid{(g.in.h - py + g.stride.h - 1) / g.stride.h,
                        (g.in.w - px + g.stride.w - 1) / g.stride.w};
      const std::vector<PhaseTap> taps = taps_of_phase(g, py, px);
      const auto count_taps = static_cast<int64_t>(taps.size());
      parallel_for(panels, pack_grain(g), [&](int64_t begin, int64_t end) {
        pack_input_grad(g, w, taps, begin, end, packed.data());
      });
      run_indirect(
          {g.images * grid.h * grid.w, count_taps, g.group_out(), n, packed.data(), starts.data()},
          [&](int64_t begin, int64_t count, const float** a, float** c) {
            PixelWalk at(begin, grid);
            for (int64_t i = 0; i < count; ++i, at.next()) {
              const int64_t y = py + at.y * g.stride.h;
              const int64_t x = px + at.x * g.stride.w;
              c[i] = dx + ((at.image * g.in.h + y) * g.in.w + x) * g.in_channels;
              const float** to = a + i / kRows * count_taps * kRows + i % kRows;
              for (const PhaseTap& tap : taps) {
                const int64_t v = at.y + tap.y;
                const int64_t u = at.x + tap.x;
                *to = inside(v, g.out.h) && inside(u, g.out.w) ? dy + strides.at(at.image, v, u)
                                                               : zeros.data();
                to += kRows;
              }
            }
          });
    }
  }
}

// --- weight gradient: rows are output channels, columns input channels of one tap, and the sum
// runs over pixels

constexpr int64_t kGradRows = 22 * kRows;  // output channels of a block: with kDepth, 200 KB

// dy of pixels [begin, begin + depth), channels [o, o + rows), as k-major panels of 6.
HWY_ATTR void pack_dy(const Conv2dWeightGradArgs<float>& args, int64_t channel, int64_t rows,
                      int64_t begin, int64_t depth, float* to) {
  const PixelStrides strides(args.dy.layout);
  PixelWalk at(begin, args.g.out);
  for (int64_t k = 0; k < depth; ++k, at.next()) {
    const float* from = args.dy.data + strides.at(at.image, at.y, at.x) + channel;
    float* panel = to + k * kRows;
    int64_t i = 0;
    for (; i + kRows <= rows; i += kRows, panel += depth * kRows)
      for (int64_t r = 0; r < kRows; ++r) panel[r] = from[i + r];
    for (int64_t r = 0; i < rows && r < kRows; ++r) panel[r] = i + r < rows ? from[i + r] : 0.0F;
  }
}

void point_to_x(const Conv2dWeightGradArgs<float>& args, int64_t tap, int64_t begin, int64_t depth,
                const float* zeros, const float** to) {
  const ConvGeometry& g = args.g;
  const PixelStrides strides(args.x.layout);
  const int64_t dy = tap / g.kernel.w * g.dilation.h - g.pad_top;
  const int64_t dx = tap % g.kernel.w * g.dilation.w - g.pad_left;
  PixelWalk at(begin, g.out);
  for (int64_t k = 0; k < depth; ++k, at.next()) {
    const int64_t v = at.y * g.stride.h + dy;
    const int64_t u = at.x * g.stride.w + dx;
    to[k] =
        inside(v, g.in.h) && inside(u, g.in.w) ? args.x.data + strides.at(at.image, v, u) : zeros;
  }
}

// Units [first, last) of (tap, panel of input channels), output channels [o, o + rows).
HWY_ATTR void run_weight_units(const Conv2dWeightGradArgs<float>& args, int64_t group, int64_t o,
                               int64_t rows, int64_t first, int64_t last) {
  const ConvGeometry& g = args.g;
  const int64_t width = panel_width();
  const int64_t n = g.group_in();
  const int64_t panels = round_up(n, width) / width;
  const int64_t pixels = g.out_pixels();
  const Scratch<float> packed_dy(round_up(rows, kRows) * kDepth);
  const Scratch<float> packed_x(width * kDepth);
  const Scratch<float> zeros(std::max(g.in_channels, width));
  const Scratch<const float*> pointers(kDepth);
  std::fill_n(zeros.data(), std::max(g.in_channels, width), 0.0F);
  const int64_t channel = group * g.group_out() + o;
  for (int64_t begin = 0; begin < pixels; begin += kDepth) {
    const int64_t depth = std::min(kDepth, pixels - begin);
    pack_dy(args, channel, rows, begin, depth, packed_dy.data());
    for (int64_t unit = first; unit < last; ++unit) {
      const int64_t tap = unit / panels;
      const int64_t j = unit % panels * width;
      const int64_t cols = std::min(width, n - j);
      if (unit == first || j == 0)
        point_to_x(args, tap, begin, depth, zeros.data(), pointers.data());
      pack_gathered(pointers.data(), group * n + j, depth, cols, packed_x.data());
      for (int64_t i = 0; i < rows; i += kRows) {
        const float* a[kRows];
        float* c[kRows];
        const int64_t count = std::min(kRows, rows - i);
        for (int64_t r = 0; r < kRows; ++r) {
          a[r] = packed_dy.data() + i * depth + r;
          c[r] = args.dw.data + (channel + i + std::min(r, count - 1)) * g.depth() + tap * n;
        }
        run_tile({a, 1, 0, depth, kRows, packed_x.data(), c, j, count, cols,
                  begin == 0 ? zeros.data() : nullptr});
      }
    }
  }
}

HWY_ATTR void run_weight_grad(const Conv2dWeightGradArgs<float>& args) {
  const ConvGeometry& g = args.g;
  const int64_t per_block = g.taps() * (round_up(g.group_in(), panel_width()) / panel_width());
  const int64_t blocks = (g.group_out() + kGradRows - 1) / kGradRows;
  const int64_t block = round_up((g.group_out() + blocks - 1) / blocks, kRows);
  const int64_t grain =
      std::max<int64_t>(1, kThreadWork / (block * panel_width() * g.out_pixels()));
  for (int64_t group = 0; group < g.groups; ++group)
    parallel_for(blocks * per_block, grain, [&](int64_t first, int64_t last) {
      while (first < last) {
        const int64_t at = first / per_block;
        const int64_t stop = std::min(last, (at + 1) * per_block);
        const int64_t rows = std::min(block, g.group_out() - at * block);
        run_weight_units(args, group, at * block, rows, first - at * per_block,
                         stop - at * per_block);
        first = stop;
      }
    });
}

}  // namespace
}  // namespace gable::cpu::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gable::cpu::simd {

HWY_EXPORT(run_forward);
HWY_EXPORT(run_input_grad);
HWY_EXPORT(run_weight_grad);

// Narrow groups would leave most of a vector empty.
static bool takes(const ConvGeometry& g, int64_t vector_channels, int64_t depth_channels) {
  return enabled() && vector_channels >= 6 && depth_channels >= 6 && g.out_pixels() >= 1;
}

bool conv(const Conv2dArgs<float>& args) {
  if (!takes(args.g, args.g.group_out(), args.g.group_in())) return false;
  HWY_DYNAMIC_DISPATCH(run_forward)(args);
  return true;
}
bool conv(const Conv2dInputGradArgs<float>& args) {
  if (!takes(args.g, args.g.group_in(), args.g.group_out())) return false;
  HWY_DYNAMIC_DISPATCH(run_input_grad)(args);
  return true;
}
bool conv(const Conv2dWeightGradArgs<float>& args) {
  if (!takes(args.g, args.g.group_in(), args.g.group_out())) return false;
  HWY_DYNAMIC_DISPATCH(run_weight_grad)(args);
  return true;
}

}  // namespace gable::cpu::simd
#endif

#endif  // GABLE_HAS_HIGHWAY
