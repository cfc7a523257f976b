// SPDX-License-Identifier: Apache-2.0
// Batch norm, layer norm, RMS norm.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gable/ops/batch_norm.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/layer_norm.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

// gamma and beta are float for 16-bit inputs.
template <class X>
auto affine(const X& x) {
  return cast<Compute<typename X::value_type>>(x);
}

template <class In>
using ElementOf = typename std::decay_t<decltype(std::declval<In>()[0])>::value_type;

double channel_value(int64_t c, double scale) { return 0.3 + scale * static_cast<double>(c % 7); }

template <class C>
BatchNormOptions<C> evaluation(int64_t channels, Device device) {
  BatchNormOptions<C> o{zeros<C>({channels}), zeros<C>({channels}), false, 0.1, 1e-5};
  for (int64_t c = 0; c < channels; ++c) {
    o.running_mean(c) = static_cast<C>(channel_value(c, -0.25));
    o.running_var(c) = static_cast<C>(channel_value(c, 0.5));
  }
  o.running_mean = o.running_mean.to(device);
  o.running_var = o.running_var.to(device);
  return o;
}

// x (N, C, S...) row-major; gamma and beta optional inputs 1 and 2.
Tensor<double> batch_norm_reference(const std::vector<Tensor<double>>& in, bool training) {
  const Shape& shape = in[0].shape();
  const int64_t n = shape[0];
  const int64_t channels = shape[1];
  const int64_t size = in[0].numel() / std::max<int64_t>(n * channels, 1);
  Tensor<double> out(shape);
  for (int64_t c = 0; c < channels; ++c) {
    auto at = [&](int64_t i) { return ((i / size) * channels + c) * size + i % size; };
    double mean = channel_value(c, -0.25);
    double var = channel_value(c, 0.5);
    if (training) {
      mean = 0;
      var = 0;
      for (int64_t i = 0; i < n * size; ++i) mean += in[0].data()[at(i)];
      mean /= static_cast<double>(n * size);
      for (int64_t i = 0; i < n * size; ++i) var += std::pow(in[0].data()[at(i)] - mean, 2);
      var /= static_cast<double>(n * size);
    }
    for (int64_t i = 0; i < n * size; ++i) {
      double y = (in[0].data()[at(i)] - mean) / std::sqrt(var + 1e-5);
      if (in.size() > 1) y = y * in[1](c) + in[2](c);
      out.data()[at(i)] = y;
    }
  }
  return out;
}

// Rows of `size` values; gamma and beta optional inputs 1 and 2.
Tensor<double> row_norm_reference(const std::vector<Tensor<double>>& in, int64_t size, double eps,
                                  bool center) {
  Tensor<double> out(in[0].shape());
  for (int64_t row = 0; row < in[0].numel() / size; ++row) {
    const double* x = in[0].data() + row * size;
    double mean = 0;
    for (int64_t i = 0; center && i < size; ++i) mean += x[i] / static_cast<double>(size);
    double var = 0;
    for (int64_t i = 0; i < size; ++i) var += (x[i] - mean) * (x[i] - mean);
    var /= static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      double y = (x[i] - mean) / std::sqrt(var + eps);
      if (in.size() > 1) y *= in[1].data()[i];
      if (in.size() > 2) y += in[2].data()[i];
      out.data()[row * size + i] = y;
    }
  }
  return out;
}

OpCase batch_norm_case(std::string name, const Shape& shape, bool training) {
  const Shape channels{shape[1]};
  OpCase c = differentiable(
      "batch_norm/" + std::move(name), {{shape}, {channels}, {channels}},
      [training, n = shape[1]](const auto& in) {
        using C = Compute<ElementOf<decltype(in)>>;
        return batch_norm(in[0], affine(in[1]), affine(in[2]),
                          training ? BatchNormOptions<C>{} : evaluation<C>(n, in[0].device()));
      },
      [training](const auto& in) { return batch_norm_reference(in, training); });
  c.float32 = {1e-5, 2e-5};
  return c;
}

const Register register_batch_norm([](const Register::Add& add) {
  add(batch_norm_case("2d", {7, 5}, true));
  add(batch_norm_case("3d", {3, 4, 5}, true));
  add(batch_norm_case("4d", {2, 3, 4, 5}, true));
  add(batch_norm_case("5d", {2, 3, 2, 1, 3}, true));
  add(batch_norm_case("one_channel", {3, 1, 2, 2}, true));
  add(batch_norm_case("batch_of_one", {1, 3, 2, 2}, true));
  add(batch_norm_case("eval", {2, 3, 4, 5}, false));
  add(batch_norm_case("eval_one_value", {1, 3}, false));
  add(batch_norm_case("eval_empty", {0, 3, 2, 2}, false));
  OpCase large = batch_norm_case("large", {8, 33, 16, 17}, true);
  large.gradient = false;  // too many elements for central differences
  large.benchmark = true;
  add(std::move(large));
  add(differentiable(
      "batch_norm/no_affine", {{{3, 4, 3}}}, [](const auto& in) { return batch_norm(in[0]); },
      [](const auto& in) { return batch_norm_reference(in, true); }));
});

const Register register_layer_norm([](const Register::Add& add) {
  auto layer = [&](std::string name, const Shape& shape, const Shape& normalized) {
    return differentiable(
        "layer_norm/" + std::move(name), {{shape}, {normalized}, {normalized}},
        [normalized](const auto& in) {
          return layer_norm(in[0], normalized, affine(in[1]), affine(in[2]));
        },
        [size = numel(normalized)](const auto& in) {
          return row_norm_reference(in, size, 1e-5, true);
        });
  };
  add(layer("one_row", {5}, {5}));
  add(layer("rows", {4, 7}, {7}));
  add(layer("rank_3", {2, 3, 19}, {19}));
  add(layer("two_dims", {3, 2, 3, 4}, {3, 4}));
  add(layer("all_dims", {2, 3}, {2, 3}));
  add(layer("no_rows", {0, 3}, {3}));
  OpCase large = layer("large", {130, 1027}, {1027});
  large.gradient = false;
  large.benchmark = true;
  add(std::move(large));
  add(differentiable(
      "layer_norm/no_affine", {{{4, 6}}}, [](const auto& in) { return layer_norm(in[0], {6}); },
      [](const auto& in) { return row_norm_reference(in, 6, 1e-5, true); }));
  add(differentiable(
      "layer_norm/gamma_only", {{{4, 6}}, {{6}}},
      [](const auto& in) { return layer_norm(in[0], {6}, affine(in[1])); },
      [](const auto& in) { return row_norm_reference(in, 6, 1e-5, true); }));
});

const Register register_rms_norm([](const Register::Add& add) {
  auto rms = [&](std::string name, const Shape& shape, const Shape& normalized) {
    return differentiable(
        "rms_norm/" + std::move(name), {{shape}, {normalized}},
        [normalized](const auto& in) { return rms_norm(in[0], normalized, affine(in[1])); },
        [size = numel(normalized)](const auto& in) {
          return row_norm_reference(in, size, 1e-6, false);
        });
  };
  add(rms("rows", {4, 7}, {7}));
  add(rms("one_value", {3, 1}, {1}));
  add(rms("two_dims", {3, 2, 3, 4}, {3, 4}));
  OpCase large = rms("large", {130, 1027}, {1027});
  large.gradient = false;
  large.benchmark = true;
  add(std::move(large));
  add(differentiable(
      "rms_norm/no_affine", {{{4, 6}}}, [](const auto& in) { return rms_norm(in[0], {6}); },
      [](const auto& in) { return row_norm_reference(in, 6, 1e-6, false); }));
});

}  // namespace
}  // namespace gable::cases
