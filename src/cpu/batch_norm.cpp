// SPDX-License-Identifier: Apache-2.0
// Batch norm: statistics, normalisation and gradients, in two loop orders. Where channels are
// adjacent in memory (channels-last, 2-d) the inner loop runs over channels; elsewhere it runs
// over the pixels of one channel.
#include "gable/ops/batch_norm.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gable/tensor/strided_loop.hpp"
#include "kernel.hpp"
#include "norm.hpp"

namespace gable {
namespace {

// Pixels that are summed in C before the sums go on in double.
constexpr int64_t kBlock = 32;

// All views of one call without their channel dimension, and how channels are strided.
template <int N>
struct Pixels {
  StridedLoop<N> loop;
  std::array<int64_t, N> channel_strides;
  int64_t channels;
  int64_t count;
  bool channels_inner;
  int64_t chunks;  // of pixels; depends on the shape only

  template <class... Views>
  explicit Pixels(const Views&... views) : Pixels(std::array<Layout, N>{views.layout...}) {}

  explicit Pixels(const std::array<Layout, N>& layouts)
      : loop(make_loop(layouts)),
        channels(layouts[0].shape()[1]),
        count(channels == 0 ? 0 : layouts[0].numel() / channels) {
    channels_inner = channels > 1;
    for (size_t k = 0; k < N; ++k) {
      channel_strides[k] = layouts[k].strides()[1];
      channels_inner &= channel_strides[k] == 1;
    }
    chunks = std::clamp<int64_t>(count * channels / 32768, 1, 64);
  }

  static StridedLoop<N> make_loop(const std::array<Layout, N>& layouts) {
    std::array<Layout, N> pixels;
    std::array<const Layout*, N> pointers;
    for (size_t k = 0; k < N; ++k) {
      // An empty channel dimension cannot be selected from; nothing is visited then.
      pixels[k] = layouts[k].shape()[1] == 0 ? Layout(Shape{0}) : layouts[k].select(1, 0);
      pixels[k] = pixels[k].with_offset(0);
      pointers[k] = &pixels[k];
    }
    return StridedLoop<N>(pointers);
  }

  // Calls f(chunk, begin, end) in parallel over fixed ranges of pixels.
  template <class F>
  void for_chunks(F&& f) const {
    parallel_for(chunks, 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) f(i, count * i / chunks, count * (i + 1) / chunks);
    });
  }
  // Calls f(offsets, n) for blocks of at most `block` evenly strided pixels.
  template <class F>
  void visit(int64_t begin, int64_t end, int64_t block, F&& f) const {
    loop.visit(begin, end, [&](auto at, int64_t n) {
      while (n > 0) {
        const int64_t piece = std::min(n, block);
        f(at, piece);
        for (size_t k = 0; k < N; ++k) at[k] += piece * loop.row_strides()[k];
        n -= piece;
      }
    });
  }
  // Calls f(channel, offset of the channel in each view) in parallel.
  template <class F>
  void for_channels(F&& f) const {
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, count));
    parallel_for(channels, grain, [&](int64_t first, int64_t last) {
      for (int64_t c = first; c < last; ++c) {
        std::array<int64_t, N> at;
        for (size_t k = 0; k < N; ++k) at[k] = c * channel_strides[k];
        f(c, at);
      }
    });
  }
};

using cpu::Moments;

// Moments of every channel, channels inner: two passes over blocks that stay in the cache, then
// Chan's combination in double.
template <class T>
std::vector<Moments> moments_channels_inner(const Pixels<1>& p, const T* x) {
  using C = Compute<T>;
  const int64_t channels = p.channels;
  std::vector<Moments> partial(static_cast<size_t>(p.chunks * channels));
  p.for_chunks([&](int64_t chunk, int64_t begin, int64_t end) {
    std::vector<C> buffer(static_cast<size_t>(3 * channels));
    C* __restrict mean = buffer.data();
    C* __restrict s1 = mean + channels;
    C* __restrict s2 = s1 + channels;
    Moments* total = partial.data() + chunk * channels;
    const int64_t step = p.loop.row_strides()[0];
    p.visit(begin, end, kBlock, [&](const auto& at, int64_t n) {
      std::fill_n(mean, 3 * channels, C(0));
      for (int64_t i = 0; i < n; ++i) {
        const T* row = x + at[0] + i * step;
        for (int64_t c = 0; c < channels; ++c) mean[c] += convert<C>(row[c]);
      }
      const C scale = C(1) / static_cast<C>(n);
      for (int64_t c = 0; c < channels; ++c) mean[c] *= scale;
      for (int64_t i = 0; i < n; ++i) {
        const T* row = x + at[0] + i * step;
        for (int64_t c = 0; c < channels; ++c) {
          const C d = convert<C>(row[c]) - mean[c];
          s1[c] += d;
          s2[c] += d * d;
        }
      }
      for (int64_t c = 0; c < channels; ++c)
        total[c].add_block(static_cast<double>(n), static_cast<double>(mean[c]),
                           static_cast<double>(s1[c]), static_cast<double>(s2[c]));
    });
  });
  for (int64_t chunk = 1; chunk < p.chunks; ++chunk)
    for (int64_t c = 0; c < channels; ++c)
      partial[static_cast<size_t>(c)].add(partial[static_cast<size_t>(chunk * channels + c)]);
  partial.resize(static_cast<size_t>(channels));
  return partial;
}

template <class T>
std::vector<Moments> moments(const Pixels<1>& p, const T* x) {
  if (p.channels_inner) return moments_channels_inner(p, x);
  std::vector<Moments> out(static_cast<size_t>(p.channels));
  const int64_t step = p.loop.row_strides()[0];
  p.for_channels([&](int64_t c, const auto& base) {
    Moments total;
    p.visit(0, p.count, cpu::kSumBlock, [&](const auto& at, int64_t n) {
      total.add(cpu::block_moments(x + base[0] + at[0], n, step));
    });
    out[static_cast<size_t>(c)] = total;
  });
  return out;
}

}  // namespace

template <class T>
static void kernel(const BatchNormStatsArgs<T>& a) {
  using C = Compute<T>;
  const std::vector<Moments> channels = moments(Pixels<1>(a.x), a.x.data);
  for (size_t c = 0; c < channels.size(); ++c) {
    const Moments& m = channels[c];
    a.mean.data[c] = m.mean;
    a.rstd.data[c] = static_cast<C>(1 / std::sqrt(m.m2 / m.n + a.eps));
    if (a.running_mean.data == nullptr) continue;
    auto move = [&](C& value, double batch) {
      value = static_cast<C>((1 - a.momentum) * static_cast<double>(value) + a.momentum * batch);
    };
    move(a.running_mean.data[c], m.mean);
    move(a.running_var.data[c], m.m2 / (m.n - 1));
  }
}
GABLE_CPU_KERNEL_FLOATS(BatchNormStatsArgs)

template <class T>
static void kernel(const BatchNormApplyArgs<T>& a) {
  using C = Compute<T>;
  const Pixels<2> p(a.y, a.x);
  const auto n_channels = static_cast<size_t>(p.channels);
  std::vector<C> buffer(4 * n_channels);
  C* __restrict high = buffer.data();  // mean = high + low
  C* __restrict low = high + p.channels;
  C* __restrict scale = low + p.channels;
  C* __restrict shift = scale + p.channels;
  for (size_t c = 0; c < n_channels; ++c) {
    high[c] = static_cast<C>(a.mean.data[c]);
    low[c] = static_cast<C>(a.mean.data[c] - static_cast<double>(high[c]));
    scale[c] = a.gamma.data != nullptr ? a.rstd.data[c] * a.gamma.data[c] : a.rstd.data[c];
    shift[c] = a.beta.data != nullptr ? a.beta.data[c] : C(0);
  }
  const auto [sy, sx] = p.loop.row_strides();
  if (p.channels_inner) {
    p.for_chunks([&](int64_t, int64_t begin, int64_t end) {
      p.visit(begin, end, p.count, [&, sy = sy, sx = sx](const auto& at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T* __restrict y = a.y.data + at[0] + i * sy;
          const T* x = a.x.data + at[1] + i * sx;
          for (int64_t c = 0; c < p.channels; ++c)
            y[c] = convert<T>(((convert<C>(x[c]) - high[c]) - low[c]) * scale[c] + shift[c]);
        }
      });
    });
    return;
  }
  p.for_channels([&](int64_t c, const auto& base) {
    const C mean = high[c];
    const C rest = low[c];
    const C factor = scale[c];
    const C bias = shift[c];
    p.visit(0, p.count, p.count, [&, sy = sy, sx = sx](const auto& at, int64_t n) {
      T* __restrict y = a.y.data + base[0] + at[0];
      const T* x = a.x.data + base[1] + at[1];
      auto value = [&](T v) { return convert<T>(((convert<C>(v) - mean) - rest) * factor + bias); };
      if (sy == 1 && sx == 1) {
        for (int64_t i = 0; i < n; ++i) y[i] = value(x[i]);
      } else {
        for (int64_t i = 0; i < n; ++i) y[i * sy] = value(x[i * sx]);
      }
    });
  });
}
GABLE_CPU_KERNEL_FLOATS(BatchNormApplyArgs)

namespace {

// Of one channel: sum dy and sum dy * (x - mean).
struct GradSums {
  double dy = 0;
  double dy_x = 0;
};

template <class T>
std::vector<GradSums> grad_sums(const BatchNormBackwardArgs<T>& a, const Compute<T>* high,
                                const Compute<T>* low) {
  using C = Compute<T>;
  const Pixels<2> p(a.x, a.dy);
  const auto [sx, sy] = p.loop.row_strides();
  const int64_t channels = p.channels;
  if (!p.channels_inner) {
    std::vector<GradSums> out(static_cast<size_t>(channels));
    p.for_channels([&](int64_t c, const auto& base) {
      GradSums total;
      p.visit(0, p.count, cpu::kSumBlock, [&, sx = sx, sy = sy](const auto& at, int64_t n) {
        const T* x = a.x.data + base[0] + at[0];
        const T* dy = a.dy.data + base[1] + at[1];
        total.dy += cpu::block_sum<C>(n, [&](int64_t i) { return convert<C>(dy[i * sy]); });
        total.dy_x += cpu::block_sum<C>(n, [&](int64_t i) {
          return convert<C>(dy[i * sy]) * ((convert<C>(x[i * sx]) - high[c]) - low[c]);
        });
      });
      out[static_cast<size_t>(c)] = total;
    });
    return out;
  }
  std::vector<GradSums> partial(static_cast<size_t>(p.chunks * channels));
  p.for_chunks([&, sx = sx, sy = sy](int64_t chunk, int64_t begin, int64_t end) {
    std::vector<C> buffer(static_cast<size_t>(2 * channels));
    C* __restrict s1 = buffer.data();
    C* __restrict s2 = s1 + channels;
    GradSums* total = partial.data() + chunk * channels;
    p.visit(begin, end, kBlock, [&](const auto& at, int64_t n) {
      std::fill_n(s1, 2 * channels, C(0));
      for (int64_t i = 0; i < n; ++i) {
        const T* x = a.x.data + at[0] + i * sx;
        const T* dy = a.dy.data + at[1] + i * sy;
        for (int64_t c = 0; c < channels; ++c) {
          const C g = convert<C>(dy[c]);
          s1[c] += g;
          s2[c] += g * ((convert<C>(x[c]) - high[c]) - low[c]);
        }
      }
      for (int64_t c = 0; c < channels; ++c) {
        total[c].dy += static_cast<double>(s1[c]);
        total[c].dy_x += static_cast<double>(s2[c]);
      }
    });
  });
  for (int64_t chunk = 1; chunk < p.chunks; ++chunk)
    for (int64_t c = 0; c < channels; ++c) {
      const GradSums& more = partial[static_cast<size_t>(chunk * channels + c)];
      partial[static_cast<size_t>(c)].dy += more.dy;
      partial[static_cast<size_t>(c)].dy_x += more.dy_x;
    }
  partial.resize(static_cast<size_t>(channels));
  return partial;
}

// dx = scale * dy + slope * (x - mean) + shift, coefficients a channel.
template <class T>
void input_gradient(const BatchNormBackwardArgs<T>& a, const Compute<T>* high,
                    const Compute<T>* low, const Compute<T>* scale, const Compute<T>* slope,
                    const Compute<T>* shift) {
  using C = Compute<T>;
  const Pixels<3> p(a.dx, a.x, a.dy);
  const auto [sd, sx, sy] = p.loop.row_strides();
  if (p.channels_inner) {
    p.for_chunks([&, sd = sd, sx = sx, sy = sy](int64_t, int64_t begin, int64_t end) {
      p.visit(begin, end, p.count, [&](const auto& at, int64_t n) {
        for (int64_t i = 0; i < n; ++i) {
          T* __restrict dx = a.dx.data + at[0] + i * sd;
          const T* x = a.x.data + at[1] + i * sx;
          const T* dy = a.dy.data + at[2] + i * sy;
          for (int64_t c = 0; c < p.channels; ++c)
            dx[c] = convert<T>(convert<C>(dy[c]) * scale[c] +
                               ((convert<C>(x[c]) - high[c]) - low[c]) * slope[c] + shift[c]);
        }
      });
    });
    return;
  }
  p.for_channels([&, sd = sd, sx = sx, sy = sy](int64_t c, const auto& base) {
    p.visit(0, p.count, p.count, [&](const auto& at, int64_t n) {
      T* __restrict dx = a.dx.data + base[0] + at[0];
      const T* x = a.x.data + base[1] + at[1];
      const T* dy = a.dy.data + base[2] + at[2];
      const C s = scale[c];
      for (int64_t i = 0; i < n; ++i)
        dx[i * sd] = convert<T>(convert<C>(dy[i * sy]) * s +
                                ((convert<C>(x[i * sx]) - high[c]) - low[c]) * slope[c] + shift[c]);
    });
  });
}

}  // namespace

template <class T>
static void kernel(const BatchNormBackwardArgs<T>& a) {
  using C = Compute<T>;
  const auto channels = static_cast<size_t>(a.x.size(1));
  std::vector<C> high(channels);
  std::vector<C> low(channels);
  for (size_t c = 0; c < channels; ++c) {
    high[c] = static_cast<C>(a.mean.data[c]);
    low[c] = static_cast<C>(a.mean.data[c] - static_cast<double>(high[c]));
  }
  const std::vector<GradSums> sums = grad_sums(a, high.data(), low.data());
  for (size_t c = 0; c < channels; ++c) {
    a.dbeta.data[c] = static_cast<C>(sums[c].dy);
    a.dgamma.data[c] = static_cast<C>(sums[c].dy_x * static_cast<double>(a.rstd.data[c]));
  }
  if (a.dx.data == nullptr || a.dx.numel() == 0) return;
  const double count = static_cast<double>(a.x.numel()) / static_cast<double>(channels);
  std::vector<C> scale(channels);
  std::vector<C> slope(channels);
  std::vector<C> shift(channels);
  for (size_t c = 0; c < channels; ++c) {
    const auto rstd = static_cast<double>(a.rstd.data[c]);
    const double factor =
        a.gamma.data != nullptr ? rstd * static_cast<double>(a.gamma.data[c]) : rstd;
    scale[c] = static_cast<C>(factor);
    if (!a.training) continue;
    slope[c] = static_cast<C>(-factor * rstd * rstd * sums[c].dy_x / count);
    shift[c] = static_cast<C>(-factor * sums[c].dy / count);
  }
  input_gradient(a, high.data(), low.data(), scale.data(), slope.data(), shift.data());
}
GABLE_CPU_KERNEL_FLOATS(BatchNormBackwardArgs)

}  // namespace gable
