// SPDX-License-Identifier: Apache-2.0
// Reductions, sum_to.
#include "gable/ops/reduce.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gable/ops/sum_to.hpp"
#include "gable/ops/where.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

using Values = std::vector<double>;
using Function = double (*)(const Values&);
using Reference = std::function<Tensor<double>(const std::vector<Tensor<double>>&)>;

// f of the values of each output, in row-major order.
Reference over(Dims dims, bool keepdim, Function f) {
  return [dims, keepdim, f](const std::vector<Tensor<double>>& in) {
    const Tensor<double>& x = in[0];
    Dims reduced = wrap_dims(dims, x.rank(), "reference");
    Shape kept;
    Shape shape;
    for (int d = 0; d < x.rank(); ++d) {
      kept.push_back(reduced.contains(d) ? 1 : x.shape()[d]);
      if (keepdim || !reduced.contains(d)) shape.push_back(kept.back());
    }
    std::vector<Values> groups(static_cast<size_t>(numel(kept)));
    std::vector<int64_t> index(static_cast<size_t>(x.rank()));
    for (int64_t i = 0; i < x.numel(); ++i) {
      int64_t rest = i;
      for (int d = x.rank() - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = rest % x.shape()[d];
        rest /= x.shape()[d];
      }
      int64_t o = 0;
      for (int d = 0; d < x.rank(); ++d)
        o = o * kept[d] + (kept[d] == 1 ? 0 : index[static_cast<size_t>(d)]);
      groups[static_cast<size_t>(o)].push_back(x.data()[i]);
    }
    Tensor<double> y(shape);
    for (int64_t o = 0; o < y.numel(); ++o) y.data()[o] = f(groups[static_cast<size_t>(o)]);
    return y;
  };
}

double sum_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += x;
  return s;
}
double mean_of(const Values& v) { return sum_of(v) / static_cast<double>(v.size()); }
double prod_of(const Values& v) {
  double s = 1;
  for (const double x : v) s *= x;
  return s;
}
double max_of(const Values& v) { return *std::max_element(v.begin(), v.end()); }
double min_of(const Values& v) { return *std::min_element(v.begin(), v.end()); }
double argmax_of(const Values& v) {
  return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
}
double argmin_of(const Values& v) {
  return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
}
double squares_of(const Values& v) {
  const double mean = mean_of(v);
  double s = 0;
  for (const double x : v) s += (x - mean) * (x - mean);
  return s;
}
double var_of(const Values& v) { return squares_of(v) / (static_cast<double>(v.size()) - 1); }
double var0_of(const Values& v) { return squares_of(v) / static_cast<double>(v.size()); }
double std_of(const Values& v) { return std::sqrt(var_of(v)); }
double norm1_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += std::abs(x);
  return s;
}
double norm2_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += x * x;
  return std::sqrt(s);
}
double norm_inf_of(const Values& v) {
  double s = 0;
  for (const double x : v) s = std::max(s, std::abs(x));
  return s;
}
double logsumexp_of(const Values& v) {
  double s = 0;
  for (const double x : v) s += std::exp(x);
  return std::log(s);
}
double all_of(const Values& v) {
  return std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1 : 0;
}
double any_of(const Values& v) {
  return std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }) ? 1 : 0;
}

struct Setting {
  const char* name;
  Shape shape;
  Dims dims;
  bool keepdim;
};
// Inner, outer and mixed dimensions; short dense rows; odd sizes.
const std::vector<Setting> kSettings = {
    {"all", {3, 4, 5}, {}, false},
    {"last", {7, 19}, {-1}, false},
    {"first", {19, 7}, {0}, true},
    {"middle", {3, 5, 4}, {1}, false},
    {"outer_inner", {3, 4, 5}, {0, 2}, true},
    {"one_value", {1, 4, 1}, {0, 2}, false},
    {"rank0", {}, {}, false},
    {"channels", {2, 3, 5, 5}, {0, 2, 3}, false},
};

constexpr double kInf = std::numeric_limits<double>::infinity();

template <class Run>
void add_all(const Register::Add& add, const std::string& name, Run run, Function f,
             bool single_value = true) {
  for (const Setting& s : kSettings) {
    if (!single_value && (s.shape.empty() || s.shape[0] == 1)) continue;
    add(differentiable(
        name + "/" + s.name, {{s.shape}},
        [run, s](const auto& in) { return run(in[0], s.dims, s.keepdim); },
        over(s.dims, s.keepdim, f)));
  }
}

#define RUN(call) [](const auto& x, const Dims& dims, bool keepdim) { return call; }  // NOLINT

const Register register_reduce([](const Register::Add& add) {
  add_all(add, "sum", RUN(sum(x, dims, keepdim)), sum_of);
  add_all(add, "mean", RUN(mean(x, dims, keepdim)), mean_of);
  add_all(add, "prod", RUN(prod(x, dims, keepdim)), prod_of);
  add_all(add, "max", RUN(max(x, dims, keepdim)), max_of);
  add_all(add, "min", RUN(min(x, dims, keepdim)), min_of);
  add_all(add, "var", RUN(var(x, dims, keepdim)), var_of, false);
  add_all(add, "var/biased", RUN(var(x, dims, keepdim, 0)), var0_of);
  add_all(add, "std", RUN(gable::std(x, dims, keepdim)), std_of, false);
  add_all(add, "norm/1", RUN(norm(x, 1, dims, keepdim)), norm1_of);
  add_all(add, "norm/2", RUN(norm(x, 2, dims, keepdim)), norm2_of);
  add_all(add, "norm/inf", RUN(norm(x, kInf, dims, keepdim)), norm_inf_of);
  add_all(add, "logsumexp", RUN(logsumexp(x, dims, keepdim)), logsumexp_of);
});

const Register register_select([](const Register::Add& add) {
  for (const Setting& s : kSettings) {
    auto exact = [&](const std::string& name, auto run, Function f) {
      OpCase c = forward_only(
          name + "/" + s.name, {{s.shape}},
          [run, s](const auto& in) { return run(in[0], s.dims, s.keepdim); },
          over(s.dims, s.keepdim, f));
      c.float32 = c.float64 = c.float16 = c.bfloat16 = {0, 0};
      add(c);
    };
    exact("argmax", RUN(argmax(x, dims, keepdim)), argmax_of);
    exact("argmin", RUN(argmin(x, dims, keepdim)), argmin_of);
    exact("all", RUN(gable::all(x, dims, keepdim)), all_of);
    exact("any", RUN(gable::any(x, dims, keepdim)), any_of);
  }
});

// Zeros in products, ties of extremes.
const Register register_special([](const Register::Add& add) {
  add(differentiable(
      "prod/zeros", {{{4, 3}}},
      [](const auto& in) {
        const auto mask = from_data<bool>(
            {true, true, true, false, true, true, false, true, false, true, true, true}, {4, 3},
            in[0].device());
        return prod(masked_fill(in[0], logical_not(mask), 0), 1);
      },
      [](const std::vector<Tensor<double>>& in) {
        const double* x = in[0].data();
        return from_data<double>({x[0] * x[1] * x[2], 0, 0, x[9] * x[10] * x[11]});
      }));
});

const Register register_sum_to([](const Register::Add& add) {
  auto reference = [](const std::vector<Tensor<double>>& in) {
    return over({0, 2}, true, sum_of)(in).select(0, 0);
  };
  add(forward_only(
      "sum_to", {{{4, 3, 5}}},
      [](const auto& in) {
        return sum_to(in[0], {3, 1});
      },
      reference));
});

const Register register_large([](const Register::Add& add) {
  auto large = [&](const std::string& name, const Shape& shape, auto run, Function f,
                   const Dims& dims) {
    OpCase c = differentiable(
        name, {{shape}}, [run, dims](const auto& in) { return run(in[0], dims, false); },
        over(dims, false, f));
    c.gradient = false;
    c.benchmark = true;
    c.float32 = {1e-3, 1e-5};
    c.float16 = {0.05, 4e-3};
    c.bfloat16 = {0.5, 3e-2};
    add(c);
  };
  large("sum/large_all", {257, 521}, RUN(sum(x, dims, keepdim)), sum_of, {});
  large("sum/large_rows", {521, 257}, RUN(sum(x, dims, keepdim)), sum_of, {1});
  large("sum/large_columns", {521, 257}, RUN(sum(x, dims, keepdim)), sum_of, {0});
  large("sum/large_narrow", {40001, 3}, RUN(sum(x, dims, keepdim)), sum_of, {0});
  large("sum/large_channels", {4, 64, 23, 17}, RUN(sum(x, dims, keepdim)), sum_of, {0, 2, 3});
  large("max/large_all", {257, 521}, RUN(max(x, dims, keepdim)), max_of, {});
  large("var/large_columns", {521, 131}, RUN(var(x, dims, keepdim)), var_of, {0});
  large("logsumexp/large_rows", {101, 1003}, RUN(logsumexp(x, dims, keepdim)), logsumexp_of, {1});
});

}  // namespace
}  // namespace gable::cases
