// SPDX-License-Identifier: Apache-2.0
// Initialisers.
#include "gable/nn/init.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace gable::nn::init {

namespace {

// Draws by f<float> or f<double>, the wider of the two only for double targets.
template <class F>
void draw(const Target& target, Where where, F&& f) {
  check(target.master().defined(), where, "expected a defined tensor, got an undefined one");
  if (target.master().dtype() == DType::float64)
    target.assign(f(TypeTag<double>{}), where);
  else
    target.assign(f(TypeTag<float>{}), where);
}

// Inverse of the error function: Giles' starting value, then Newton steps to double precision.
double erfinv(double y) {
  if (y <= -1 || y >= 1) return std::copysign(HUGE_VAL, y);
  const double w = -std::log((1 - y) * (1 + y));
  double x =
      w < 5 ? 0.886 * y * (1 + 0.2 * w / 3) : std::copysign(std::sqrt(w - 0.5 * std::log(w)), y);
  const double half_sqrt_pi = 0.5 / std::numbers::inv_sqrtpi;
  for (int i = 0; i < 60; ++i) {
    const double error = y < 0 ? std::erfc(-x) - (1 + y) : (1 - y) - std::erfc(x);
    const double step = error * half_sqrt_pi * std::exp(x * x);
    x -= step;
    if (std::abs(step) <= 1e-15 * std::abs(x)) break;
  }
  return x;
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

double kaiming_std(const Target& target, const KaimingOptions& o) {
  const Fans fans = fans_of(target.shape());
  const int64_t fan = o.fan == Fan::in ? fans.in : fans.out;
  return std::sqrt(2 / (1 + o.a * o.a) / static_cast<double>(std::max<int64_t>(fan, 1)));
}

double xavier_std(const Target& target, double gain) {
  const Fans fans = fans_of(target.shape());
  return gain * std::sqrt(2.0 / static_cast<double>(std::max<int64_t>(fans.in + fans.out, 1)));
}

}  // namespace

void Target::assign(const AnyTensor& source, Where where) const {
  master_.copy_(source.device() == master_.device() ? source : source.to(master_.device()), where);
  if (value_.dtype() != master_.dtype()) value_.copy_(master_, where);
}

void constant_(const Target& target, double value) {
  draw(target, "constant_", [&]<class C>(TypeTag<C>) {
    return scalar<C>(static_cast<C>(value), target.master().device()).any();
  });
}

void uniform_(const Target& target, double low, double high, Generator& g) {
  draw(target, "uniform_", [&]<class C>(TypeTag<C>) {
    if (low == high) return full<C>(target.shape(), static_cast<C>(low)).any();
    return rand<C>(target.shape(), low, high, {.device = target.master().device()}, g).any();
  });
}

void normal_(const Target& target, double mean, double stddev, Generator& g) {
  check<TypeError>(stddev >= 0, "normal_", "expected a standard deviation >= 0, got ", stddev);
  draw(target, "normal_", [&]<class C>(TypeTag<C>) {
    return randn<C>(target.shape(), mean, stddev, {.device = target.master().device()}, g).any();
  });
}

void trunc_normal_(const Target& target, double mean, double stddev, double low, double high,
                   Generator& g) {
  check<TypeError>(low < high && stddev > 0, "trunc_normal_",
                   "expected low < high and a standard deviation > 0, got [", low, ", ", high,
                   "] and ", stddev);
  const double first = normal_cdf((low - mean) / stddev);
  const double last = normal_cdf((high - mean) / stddev);
  const Tensor<double> draws = rand<double>(target.shape(), 0, 1, {}, g);
  for (int64_t i = 0; i < draws.numel(); ++i) {
    double& v = draws.data()[i];
    const double z = std::numbers::sqrt2 * erfinv(2 * (first + (last - first) * v) - 1);
    v = std::clamp(mean + stddev * z, low, high);
  }
  target.assign(draws, "trunc_normal_");
}

Fans fans_of(const Shape& weight) {
  check(weight.size() >= 2, "fans_of", "expected a weight (out, in, ...), got ", weight);
  int64_t kernel = 1;
  for (int d = 2; d < weight.size(); ++d) kernel *= weight[d];
  return {weight[1] * kernel, weight[0] * kernel};
}

void kaiming_normal_(const Target& target, KaimingOptions o, Generator& g) {
  normal_(target, 0, kaiming_std(target, o), g);
}

void kaiming_uniform_(const Target& target, KaimingOptions o, Generator& g) {
  const double bound = std::numbers::sqrt3 * kaiming_std(target, o);
  uniform_(target, -bound, bound, g);
}

void xavier_normal_(const Target& target, double gain, Generator& g) {
  normal_(target, 0, xavier_std(target, gain), g);
}

void xavier_uniform_(const Target& target, double gain, Generator& g) {
  const double bound = std::numbers::sqrt3 * xavier_std(target, gain);
  uniform_(target, -bound, bound, g);
}

void orthogonal_(const Target& target, double gain, Generator& g) {
  const Shape& shape = target.shape();
  check(shape.size() >= 2 && numel(shape) > 0, "orthogonal_",
        "expected a weight (out, in, ...) with elements, got ", shape);
  const int64_t rows = shape[0];
  const int64_t columns = numel(shape) / rows;
  const Tensor<double> drawn = randn<double>({rows, columns}, 0, 1, {}, g);
  // Vectors to be made orthonormal: rows, or columns where there are more rows.
  const Tensor<double> vectors = rows <= columns ? drawn : drawn.t().contiguous();
  const int64_t count = vectors.size(0);
  const int64_t length = vectors.size(1);
  auto dot = [&](const double* a, const double* b) {
    double sum = 0;
    for (int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
    return sum;
  };
  for (int64_t r = 0; r < count; ++r) {
    double* v = vectors.data() + r * length;
    for (int pass = 0; pass < 2; ++pass)  // the second removes the first's rounding
      for (int64_t q = 0; q < r; ++q) {
        const double* u = vectors.data() + q * length;
        const double along = dot(u, v);
        for (int64_t i = 0; i < length; ++i) v[i] -= along * u[i];
      }
    const double norm = std::sqrt(dot(v, v));
    for (int64_t i = 0; i < length; ++i) v[i] /= norm;
  }
  for (int64_t i = 0; i < vectors.numel(); ++i) vectors.data()[i] *= gain;
  target.assign((rows <= columns ? vectors : vectors.t()).reshape(shape), "orthogonal_");
}

double default_bound(const Shape& weight) {
  const int64_t fan = fans_of(weight).in;
  return fan > 0 ? 1 / std::sqrt(static_cast<double>(fan)) : 0;
}

}  // namespace gable::nn::init
