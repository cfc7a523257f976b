// SPDX-License-Identifier: Apache-2.0
// where, masked_fill, lerp, cast.
#include <cmath>

#include "gable/ops/cast.hpp"
#include "gable/ops/where.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

// A fixed pattern of true and false.
Tensor<bool> pattern(const Shape& shape) {
  Tensor<bool> mask(shape);
  for (int64_t i = 0; i < mask.numel(); ++i) mask.data()[i] = (i * i + i / 3) % 3 == 0;
  return mask;
}
double chosen(const Tensor<bool>& mask, const Shape& shape, int64_t i) {
  return mask.expand(shape).to_vector()[static_cast<size_t>(i)] ? 1 : 0;
}

// Reference of a function of the mask and the inputs.
auto masked(Shape mask_shape, double (*f)(bool, const std::vector<double>&)) {
  return [mask_shape, f](const std::vector<Tensor<double>>& in) {
    std::vector<Tensor<double>> all = in;
    Shape shape = mask_shape;
    for (const auto& x : in) shape = broadcast_shapes(shape, x.shape(), "reference");
    Tensor<double> mask(shape);
    const Tensor<bool> p = pattern(mask_shape);
    for (int64_t i = 0; i < mask.numel(); ++i) mask.data()[i] = chosen(p, shape, i);
    all.push_back(mask);
    return pointwise([f](const auto& v) { return f(v.back() != 0, v); })(all);
  };
}

double pick(bool c, const std::vector<double>& v) { return c ? v[0] : v[1]; }
double fill(bool c, const std::vector<double>& v) { return c ? -1.5 : v[0]; }

void add_where(const Register::Add& add, const std::string& name, const Shape& c, const Shape& a,
               const Shape& b) {
  add(differentiable(
      name, {{a}, {b}},
      [c](const auto& in) { return where(pattern(c).to(in[0].device()), in[0], in[1]); },
      masked(c, pick)));
}
void add_masked_fill(const Register::Add& add, const std::string& name, const Shape& x,
                     const Shape& mask) {
  add(differentiable(
      name, {{x}},
      [mask](const auto& in) { return masked_fill(in[0], pattern(mask).to(in[0].device()), -1.5); },
      masked(mask, fill)));
}

const Register register_where([](const Register::Add& add) {
  add_where(add, "where", {3, 5}, {3, 5}, {3, 5});
  add_where(add, "where/broadcast", {4, 1, 5}, {3, 1}, {4, 1, 1});
  add_where(add, "where/rank0", {}, {}, {});
  add_where(add, "where/empty", {0, 3}, {3}, {1, 1});
  add_masked_fill(add, "masked_fill", {3, 5}, {3, 5});
  add_masked_fill(add, "masked_fill/mask_broadcast", {2, 3, 5}, {3, 1});
  add_masked_fill(add, "masked_fill/input_broadcast", {3, 1}, {2, 3, 5});
  add(differentiable(
      "where/numbers", {{{3, 5}}},
      [](const auto& in) {
        const Device device = in[0].device();
        return where(pattern({3, 5}).to(device), where(pattern({5}).to(device), in[0], 2), -3);
      },
      [](const std::vector<Tensor<double>>& in) {
        Tensor<double> out({3, 5});
        for (int64_t i = 0; i < 15; ++i) {
          const double inner = chosen(pattern({5}), {3, 5}, i) != 0 ? in[0].data()[i] : 2;
          out.data()[i] = chosen(pattern({3, 5}), {3, 5}, i) != 0 ? inner : -3;
        }
        return out;
      }));
});

double lerp_of(const std::vector<double>& v) { return v[0] + v[2] * (v[1] - v[0]); }

const Register register_lerp([](const Register::Add& add) {
  auto run = [](const auto& in) { return lerp(in[0], in[1], in[2]); };
  add(differentiable("lerp", {{{3, 5}}, {{3, 5}}, {{3, 5}}}, run, pointwise(lerp_of)));
  add(differentiable("lerp/broadcast", {{{3, 1}}, {{4, 1, 5}}, {{5}}}, run, pointwise(lerp_of)));
  add(differentiable("lerp/empty", {{{0, 5}}, {{5}}, {{}}}, run, pointwise(lerp_of)));
  for (const double w : {0.25, 0.75})
    add(differentiable(
        concat("lerp/weight_", w), {{{3, 1, 5}}, {{4, 1}}},
        [w](const auto& in) { return lerp(in[0], in[1], w); },
        pointwise([w](const auto& v) { return v[0] + w * (v[1] - v[0]); })));
});

const Register register_large([](const Register::Add& add) {
  const Shape shape{257, 331};
  auto large = [&](OpCase c) {
    c.gradient = false;
    c.benchmark = true;
    add(std::move(c));
  };
  const Tensor<bool> mask = pattern(shape);
  auto select = [](double (*f)(bool, const std::vector<double>&), const Tensor<bool>& m) {
    return [f, m](const std::vector<Tensor<double>>& in) {
      std::vector<Tensor<double>> all = in;
      all.push_back(m.to<double>());
      return pointwise([f](const auto& v) { return f(v.back() != 0, v); })(all);
    };
  };
  large(differentiable(
      "where/large", {{shape}, {shape}},
      [mask](const auto& in) { return where(mask.to(in[0].device()), in[0], in[1]); },
      select(pick, mask)));
  large(differentiable(
      "masked_fill/large", {{shape}},
      [mask](const auto& in) { return masked_fill(in[0], mask.to(in[0].device()), -1.5); },
      select(fill, mask)));
  large(differentiable(
      "lerp/large", {{shape}, {shape}, {shape}},
      [](const auto& in) { return lerp(in[0], in[1], in[2]); }, pointwise(lerp_of)));
});

// Widening is exact.
const Register register_cast([](const Register::Add& add) {
  OpCase c = differentiable(
      "cast", {{{3, 5}}}, [](const auto& in) { return cast<double>(in[0]) * 2.0; },
      pointwise([](const auto& v) { return 2 * v[0]; }));
  c.float32 = c.float64 = c.float16 = c.bfloat16 = {0, 0};
  add(c);
  c = forward_only(
      "cast/int32", {{{4, 7}, -90, 90}}, [](const auto& in) { return cast<int32_t>(in[0]); },
      pointwise([](const auto& v) { return std::trunc(v[0]); }));
  c.float32 = c.float64 = c.float16 = c.bfloat16 = {0, 0};
  add(c);
});

}  // namespace
}  // namespace gable::cases
