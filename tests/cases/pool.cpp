// SPDX-License-Identifier: Apache-2.0
// Pooling.
#include "gable/ops/pool.hpp"

#include <cmath>
#include <limits>

#include "op_case.hpp"

namespace gable::cases {
namespace {

using Tensors = std::vector<Tensor<double>>;

int64_t windows_of(int64_t in, int64_t before, int64_t after, int64_t kernel, int64_t dilation,
                   int64_t stride, bool ceil_mode) {
  const double span = static_cast<double>(in + before + after - dilation * (kernel - 1) - 1) /
                      static_cast<double>(stride);
  auto n = static_cast<int64_t>(ceil_mode ? std::ceil(span) : std::floor(span)) + 1;
  if (ceil_mode && (n - 1) * stride >= in + before) --n;
  return n;
}

Tensor<double> naive_max(const Tensor<double>& x, Size2d k, const MaxPoolOptions& o) {
  const Size2d s = o.stride == Size2d(0) ? k : o.stride;
  const Padding& p = o.padding;
  Tensor<double> y({x.size(0), x.size(1),
                    windows_of(x.size(2), p.top, p.bottom, k.h, o.dilation.h, s.h, o.ceil_mode),
                    windows_of(x.size(3), p.left, p.right, k.w, o.dilation.w, s.w, o.ceil_mode)});
  for (int64_t n = 0; n < y.size(0); ++n)
    for (int64_t c = 0; c < y.size(1); ++c)
      for (int64_t i = 0; i < y.size(2); ++i)
        for (int64_t j = 0; j < y.size(3); ++j) {
          double best = -std::numeric_limits<double>::infinity();
          for (int64_t a = 0; a < k.h; ++a)
            for (int64_t b = 0; b < k.w; ++b) {
              const int64_t u = i * s.h - p.top + a * o.dilation.h;
              const int64_t v = j * s.w - p.left + b * o.dilation.w;
              if (u < 0 || v < 0 || u >= x.size(2) || v >= x.size(3)) continue;
              best = std::max(best, x(n, c, u, v));
            }
          y(n, c, i, j) = best;
        }
  return y;
}

Tensor<double> naive_avg(const Tensor<double>& x, Size2d k, const AvgPoolOptions& o) {
  const Size2d s = o.stride == Size2d(0) ? k : o.stride;
  const Padding& p = o.padding;
  Tensor<double> y({x.size(0), x.size(1),
                    windows_of(x.size(2), p.top, p.bottom, k.h, 1, s.h, o.ceil_mode),
                    windows_of(x.size(3), p.left, p.right, k.w, 1, s.w, o.ceil_mode)});
  for (int64_t n = 0; n < y.size(0); ++n)
    for (int64_t c = 0; c < y.size(1); ++c)
      for (int64_t i = 0; i < y.size(2); ++i)
        for (int64_t j = 0; j < y.size(3); ++j) {
          double sum = 0;
          double inside = 0;
          double padded = 0;
          for (int64_t u = i * s.h - p.top; u < i * s.h - p.top + k.h; ++u)
            for (int64_t v = j * s.w - p.left; v < j * s.w - p.left + k.w; ++v) {
              if (u < x.size(2) + p.bottom && v < x.size(3) + p.right) padded += 1;
              if (u < 0 || v < 0 || u >= x.size(2) || v >= x.size(3)) continue;
              inside += 1;
              sum += x(n, c, u, v);
            }
          y(n, c, i, j) = sum / (o.count_include_pad ? padded : inside);
        }
  return y;
}

Tensor<double> naive_adaptive(const Tensor<double>& x, Size2d out) {
  Tensor<double> y({x.size(0), x.size(1), out.h, out.w});
  const auto begin = [](int64_t i, int64_t in, int64_t n) { return i * in / n; };
  const auto end = [](int64_t i, int64_t in, int64_t n) { return ((i + 1) * in + n - 1) / n; };
  for (int64_t n = 0; n < y.size(0); ++n)
    for (int64_t c = 0; c < y.size(1); ++c)
      for (int64_t i = 0; i < out.h; ++i)
        for (int64_t j = 0; j < out.w; ++j) {
          double sum = 0;
          double count = 0;
          for (int64_t u = begin(i, x.size(2), out.h); u < end(i, x.size(2), out.h); ++u)
            for (int64_t v = begin(j, x.size(3), out.w); v < end(j, x.size(3), out.w); ++v) {
              sum += x(n, c, u, v);
              count += 1;
            }
          y(n, c, i, j) = sum / count;
        }
  return y;
}

OpCase max_case(const std::string& name, const Shape& x, Size2d k, const MaxPoolOptions& o) {
  return differentiable(
      "max_pool2d/" + name, {{x}}, [k, o](const auto& in) { return max_pool2d(in[0], k, o); },
      [k, o](const Tensors& in) { return naive_max(in[0], k, o); });
}
OpCase avg_case(const std::string& name, const Shape& x, Size2d k, const AvgPoolOptions& o) {
  return differentiable(
      "avg_pool2d/" + name, {{x}}, [k, o](const auto& in) { return avg_pool2d(in[0], k, o); },
      [k, o](const Tensors& in) { return naive_avg(in[0], k, o); });
}
OpCase adaptive_case(const std::string& name, const Shape& x, Size2d out) {
  return differentiable(
      "adaptive_avg_pool2d/" + name, {{x}},
      [out](const auto& in) { return adaptive_avg_pool2d(in[0], out); },
      [out](const Tensors& in) { return naive_adaptive(in[0], out); });
}

const Register register_pool([](const Register::Add& add) {
  add(max_case("2x2", {2, 3, 6, 5}, 2, {}));
  add(max_case("3x3_stride2_padded", {1, 5, 7, 8}, 3, {.stride = 2, .padding = 1}));
  add(max_case("overlapping", {1, 2, 5, 5}, {3, 2}, {.stride = 1, .padding = {1, 0, 0, 1}}));
  add(max_case("ceil", {1, 3, 6, 7}, 3, {.stride = 2, .ceil_mode = true}));
  add(max_case("ceil_padded", {1, 1, 5, 5}, 2, {.stride = 2, .padding = 1, .ceil_mode = true}));
  add(max_case("dilated", {1, 2, 7, 7}, 2, {.stride = 1, .padding = 1, .dilation = 3}));
  add(max_case("one_value", {1, 1, 1, 1}, 1, {}));
  OpCase wide = max_case("wide_kernel", {1, 1, 18, 19}, 17, {.stride = 1});  // 32-bit taps
  add(wide);
  OpCase large = max_case("large", {3, 70, 33, 31}, 3, {.stride = 2, .padding = 1});
  large.gradient = false;
  large.benchmark = true;
  add(large);
  add(avg_case("2x2", {2, 3, 6, 5}, 2, {}));
  add(avg_case("padded", {1, 5, 6, 7}, 3, {.stride = 2, .padding = 1}));
  add(avg_case("padding_excluded", {1, 2, 6, 7}, 3,
               {.stride = 2, .padding = 1, .count_include_pad = false}));
  add(avg_case("ceil", {1, 2, 6, 5}, 3, {.stride = 2, .padding = 1, .ceil_mode = true}));
  add(avg_case("ceil_excluded", {1, 2, 6, 5}, {2, 3},
               {.stride = 3, .padding = 1, .ceil_mode = true, .count_include_pad = false}));
  add(adaptive_case("global", {2, 67, 4, 3}, 1));
  add(adaptive_case("uneven", {1, 2, 7, 5}, {3, 4}));
  add(adaptive_case("larger", {1, 2, 2, 3}, {5, 4}));
});

}  // namespace
}  // namespace gable::cases
