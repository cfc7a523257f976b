// SPDX-License-Identifier: Apache-2.0
// gather, scatter_add, index_select, embedding, sort, topk.
#include "gable/ops/index.hpp"

#include <algorithm>
#include <numeric>

#include "gable/ops/sort.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

// Indices below `bound`, with repeats.
Tensor<int64_t> indices(const Shape& shape, int64_t bound) {
  Tensor<int64_t> t(shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.data()[i] = (i * 7 + i / 3) % bound;
  return t;
}

// Calls f(position in index, row of x's dim, position in x) where x has two dimensions.
template <class F>
void for_matrix(const Tensor<int64_t>& index, int64_t dim, F f) {
  for (int64_t i = 0; i < index.size(0); ++i)
    for (int64_t j = 0; j < index.size(1); ++j)
      f(i, j, dim == 0 ? index(i, j) : i, dim == 1 ? index(i, j) : j);
}

const Register register_gather([](const Register::Add& add) {
  struct Setting {
    const char* name;
    Shape x;
    Shape index;
    int64_t dim;
  };
  for (const Setting& s : std::vector<Setting>{{"rows", {4, 5}, {7, 3}, 0},
                                               {"columns", {4, 5}, {3, 9}, 1},
                                               {"one", {1, 5}, {1, 1}, 1},
                                               {"empty", {4, 5}, {0, 5}, 0}}) {
    const Tensor<int64_t> index = indices(s.index, s.x[static_cast<int>(s.dim)]);
    add(differentiable(
        concat("gather/", s.name), {{s.x}},
        [=](const auto& in) { return gather(in[0], s.dim, index.to(in[0].device())); },
        [=](const std::vector<Tensor<double>>& in) {
          Tensor<double> y(s.index);
          for_matrix(index, s.dim,
                     [&](int64_t i, int64_t j, int64_t a, int64_t b) { y(i, j) = in[0](a, b); });
          return y;
        }));
    add(differentiable(
        concat("scatter_add/", s.name), {{s.x}, {{8, 10}}},
        [=](const auto& in) { return scatter_add(in[0], s.dim, index.to(in[0].device()), in[1]); },
        [=](const std::vector<Tensor<double>>& in) {
          Tensor<double> y = in[0].clone();
          for_matrix(index, s.dim,
                     [&](int64_t i, int64_t j, int64_t a, int64_t b) { y(a, b) += in[1](i, j); });
          return y;
        }));
  }
});

const Register register_select([](const Register::Add& add) {
  const Tensor<int64_t> index = indices({6}, 4);
  add(differentiable(
      "index_select/rows", {{{4, 5}}},
      [=](const auto& in) { return index_select(in[0], 0, index.to(in[0].device())); },
      [=](const std::vector<Tensor<double>>& in) {
        Tensor<double> y({6, 5});
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 0; j < 5; ++j) y(i, j) = in[0](index(i), j);
        return y;
      }));
  add(differentiable(
      "index_select/middle", {{{2, 4, 3}}},
      [=](const auto& in) { return index_select(in[0], 1, index.to(in[0].device())); },
      [=](const std::vector<Tensor<double>>& in) {
        Tensor<double> y({2, 6, 3});
        for (int64_t i = 0; i < 2; ++i)
          for (int64_t j = 0; j < 6; ++j)
            for (int64_t k = 0; k < 3; ++k) y(i, j, k) = in[0](i, index(j), k);
        return y;
      }));
  auto embed = [&](const std::string& name, int64_t rows, int64_t width, const Shape& shape) {
    const Tensor<int64_t> at = indices(shape, rows);
    return differentiable(
        name, {{{rows, width}}},
        [=](const auto& in) { return embedding(in[0], at.to(in[0].device())); },
        [=](const std::vector<Tensor<double>>& in) {
          Shape result = shape;
          result.push_back(width);
          Tensor<double> y(result);
          for (int64_t i = 0; i < at.numel(); ++i)
            for (int64_t j = 0; j < width; ++j) y.data()[i * width + j] = in[0](at.data()[i], j);
          return y;
        });
  };
  add(embed("embedding", 5, 3, {2, 4}));
  add(embed("embedding/scalar", 5, 3, {}));
  add(embed("embedding/empty", 5, 3, {0}));
  OpCase large = embed("embedding/large", 1000, 64, {40, 50});
  large.gradient = false;
  large.benchmark = true;
  add(std::move(large));
});

// The first k of each line in order.
auto sorted(int64_t dim, bool descending, int64_t k) {
  return [=](const std::vector<Tensor<double>>& in) {
    const Tensor<double> lines = in[0].transpose(dim, -1);
    const int64_t n = lines.size(-1);
    Tensor<double> y = Tensor<double>({lines.size(0), k});
    for (int64_t line = 0; line < lines.size(0); ++line) {
      std::vector<double> v = lines[line].to_vector();
      std::sort(v.begin(), v.end());
      if (descending) std::reverse(v.begin(), v.end());
      for (int64_t i = 0; i < std::min(k, n); ++i) y(line, i) = v[static_cast<size_t>(i)];
    }
    return dim == 0 ? y.t().contiguous() : y;
  };
}

const Register register_sort([](const Register::Add& add) {
  for (const int64_t dim : {int64_t{0}, int64_t{1}})
    for (const bool descending : {false, true}) {
      add(differentiable(
          concat("sort/", dim, descending ? "_descending" : ""), {{{7, 9}}},
          [=](const auto& in) { return sort(in[0], dim, descending).values; },
          sorted(dim, descending, dim == 0 ? 7 : 9)));
      add(differentiable(
          concat("topk/", dim, descending ? "_largest" : "_smallest"), {{{13, 17}}},
          [=](const auto& in) { return topk(in[0], 3, dim, descending).values; },
          sorted(dim, descending, 3)));
    }
  OpCase large = differentiable(
      "sort/large", {{{37, 1009}}}, [](const auto& in) { return sort(in[0]).values; },
      sorted(1, false, 1009));
  large.gradient = false;
  large.benchmark = true;
  add(std::move(large));
});

}  // namespace
}  // namespace gable::cases
