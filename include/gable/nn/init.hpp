// SPDX-License-Identifier: Apache-2.0
// Initialisers. Each writes a parameter (master and compute copy) or a float tensor in place and
// draws in row-major order whatever the strides, so one seed gives the same weights in any layout.
#pragma once

#include <cstdint>

#include "gable/autograd/variable.hpp"
#include "gable/tensor/random.hpp"

namespace gable::nn::init {

/// What an initialiser fills.
class Target {
 public:
  template <FloatElement T>
  Target(const Tensor<T>& t) : master_(t), value_(t) {}  // NOLINT(google-explicit-constructor)
  template <FloatElement T>
  Target(const Parameter<T>& p) : Target(p.any()) {}  // NOLINT(google-explicit-constructor)
  Target(const AnyParameter& p)                       // NOLINT(google-explicit-constructor)
      : master_(p.master()), value_(p.value()) {}
  [[nodiscard]] const Shape& shape() const { return master_.shape(); }
  [[nodiscard]] const AnyTensor& master() const { return master_; }
  /// Copies `source`, broadcast to shape().
  void assign(const AnyTensor& source, Where where) const;

 private:
  AnyTensor master_;
  AnyTensor value_;
};

void constant_(const Target& target, double value);
inline void zeros_(const Target& target) { constant_(target, 0); }
inline void ones_(const Target& target) { constant_(target, 1); }
void uniform_(const Target& target, double low = 0, double high = 1,
              Generator& g = default_generator());
void normal_(const Target& target, double mean = 0, double stddev = 1,
             Generator& g = default_generator());
/// Normal restricted to [low, high], by inversion. Throws TypeError unless low < high.
void trunc_normal_(const Target& target, double mean = 0, double stddev = 1, double low = -2,
                   double high = 2, Generator& g = default_generator());

/// Inputs and outputs of one unit: a weight (O, I, kernel...) has in = I * kernel, out =
/// O * kernel elements. Throws ShapeError below rank 2.
struct Fans {
  int64_t in;
  int64_t out;
};
[[nodiscard]] Fans fans_of(const Shape& weight);

enum class Fan : uint8_t { in, out };

/// std = sqrt(2 / (1 + a^2) / fan) keeps the variance through leaky ReLUs of slope a (He et al.
/// 2015); a = 0 is ReLU, a = 1 linear.
struct KaimingOptions {
  double a = 0;
  Fan fan = Fan::in;
};
void kaiming_normal_(const Target& target, KaimingOptions o = {},
                     Generator& g = default_generator());
/// The same variance, uniform in +-sqrt(3) std.
void kaiming_uniform_(const Target& target, KaimingOptions o = {},
                      Generator& g = default_generator());
/// std = gain sqrt(2 / (in + out)) (Glorot & Bengio 2010).
void xavier_normal_(const Target& target, double gain = 1, Generator& g = default_generator());
void xavier_uniform_(const Target& target, double gain = 1, Generator& g = default_generator());
/// Rows (O) or, where there are more of them than columns, columns of the matrix (O, rest) are
/// orthonormal times `gain` (Saxe et al. 2014). O(rows^2 columns), in double.
void orthogonal_(const Target& target, double gain = 1, Generator& g = default_generator());

/// 1 / sqrt(fan_in); 0 for an empty weight.
[[nodiscard]] double default_bound(const Shape& weight);
/// PyTorch's default of linear and convolution layers: weight uniform in +-1 / sqrt(fan_in), which
/// is kaiming_uniform_ with a = sqrt(5), and the bias (undefined: none) in the same bounds.
template <FloatElement T>
void default_(const Parameter<T>& weight, const Parameter<T>& bias,
              Generator& g = default_generator()) {
  const double bound = default_bound(weight.shape());
  uniform_(weight, -bound, bound, g);
  if (bias.defined()) uniform_(bias, -bound, bound, g);
}

}  // namespace gable::nn::init
