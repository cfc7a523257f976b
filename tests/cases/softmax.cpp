// SPDX-License-Identifier: Apache-2.0
// softmax, log_softmax, masked_softmax, cumsum.
#include "gable/ops/softmax.hpp"

#include <cmath>

#include "op_case.hpp"

namespace gable::cases {
namespace {

using Values = std::vector<double>;

// f, applied in place to every line along dim.
template <class F>
auto lines(int64_t dim, F f) {
  return [dim, f](const std::vector<Tensor<double>>& in) {
    Tensor<double> y = in[0].clone();
    if (y.numel() == 0) return y;
    const Tensor<double> last = y.rank() == 0 ? y.unsqueeze(0) : y.transpose(dim, -1);
    const int64_t n = last.size(-1);
    Shape index = last.shape();
    for (int64_t line = 0; line < last.numel() / n; ++line) {
      int64_t rest = line;
      int64_t offset = 0;
      for (int d = last.rank() - 2; d >= 0; --d) {
        offset += rest % index[d] * last.stride(d);
        rest /= index[d];
      }
      Values values;
      for (int64_t i = 0; i < n; ++i) values.push_back(last.data()[offset + i * last.stride(-1)]);
      f(values, line);
      for (int64_t i = 0; i < n; ++i)
        last.data()[offset + i * last.stride(-1)] = values[static_cast<size_t>(i)];
    }
    return y;
  };
}

void softmax_of(Values& v, int64_t) {
  double s = 0;
  for (double& x : v) s += x = std::exp(x);
  for (double& x : v) x /= s;
}
void log_softmax_of(Values& v, int64_t) {
  double s = 0;
  for (const double x : v) s += std::exp(x);
  for (double& x : v) x -= std::log(s);
}
void cumsum_of(Values& v, int64_t) {
  double s = 0;
  for (double& x : v) s = x += s;
}

struct Setting {
  const char* name;
  Shape shape;
  int64_t dim;
};
const std::vector<Setting> kSettings = {
    {"last", {3, 17}, -1},    {"first", {5, 37}, 0}, {"middle", {2, 5, 3}, 1},
    {"one_value", {4, 1}, 1}, {"rank0", {}, 0},      {"empty", {0, 3}, 1},
    {"no_values", {3, 0}, 1},
};

const Register register_softmax([](const Register::Add& add) {
  for (const Setting& s : kSettings) {
    add(differentiable(
        concat("softmax/", s.name), {{s.shape}},
        [d = s.dim](const auto& in) { return softmax(in[0], d); }, lines(s.dim, softmax_of)));
    add(differentiable(
        concat("log_softmax/", s.name), {{s.shape}},
        [d = s.dim](const auto& in) { return log_softmax(in[0], d); },
        lines(s.dim, log_softmax_of)));
    add(differentiable(
        concat("cumsum/", s.name), {{s.shape}},
        [d = s.dim](const auto& in) { return cumsum(in[0], d); }, lines(s.dim, cumsum_of)));
  }
  // The mask of line k keeps the elements i with (i + k) % 3 == 0, and none in line 1.
  add(differentiable(
      "masked_softmax", {{{4, 7}}},
      [](const auto& in) {
        Tensor<bool> mask({4, 7});
        for (int64_t k = 0; k < 4; ++k)
          for (int64_t i = 0; i < 7; ++i) mask(k, i) = k != 1 && (i + k) % 3 == 0;
        return masked_softmax(in[0], mask.to(in[0].device()), 1);
      },
      lines(1, [](Values& v, int64_t line) {
        double s = 0;
        for (size_t i = 0; i < v.size(); ++i) {
          const bool keep = line != 1 && (i + static_cast<size_t>(line)) % 3 == 0;
          s += v[i] = keep ? std::exp(v[i]) : 0;
        }
        for (double& x : v) x = s == 0 ? 0 : x / s;
      })));
});

const Register register_large([](const Register::Add& add) {
  auto large = [&](OpCase c) {
    c.gradient = false;
    c.benchmark = true;
    add(std::move(c));
  };
  for (const Setting& s : std::vector<Setting>{{"large_rows", {257, 331}, 1},
                                               {"large_columns", {37, 1003}, 0},
                                               {"large_line", {3, 40001}, 1}}) {
    large(differentiable(
        concat("softmax/", s.name), {{s.shape}},
        [d = s.dim](const auto& in) { return softmax(in[0], d); }, lines(s.dim, softmax_of)));
    large(differentiable(
        concat("log_softmax/", s.name), {{s.shape}},
        [d = s.dim](const auto& in) { return log_softmax(in[0], d); },
        lines(s.dim, log_softmax_of)));
  }
});

}  // namespace
}  // namespace gable::cases
