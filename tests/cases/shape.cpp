// SPDX-License-Identifier: Apache-2.0
// Op cases of cat, stack, split, chunk, pad, flip, roll and of views as operators.
#include "gable/autograd/apply.hpp"
#include "gable/ops/concat.hpp"
#include "gable/ops/pad.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

using Index = std::vector<int64_t>;
using Doubles = std::vector<Tensor<double>>;
using Reference = std::function<Tensor<double>(const Doubles&)>;

double at(const Tensor<double>& x, const Index& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d)
    offset = offset * x.shape()[static_cast<int>(d)] + index[d];
  return x.data()[offset];  // inputs of references are contiguous
}

// Reference from a function that gives the value at an index of the result.
Reference indexed(Shape shape, std::function<double(const Doubles&, Index)> f) {
  return [shape, f = std::move(f)](const Doubles& in) {
    Tensor<double> out(shape);
    for (int64_t i = 0; i < out.numel(); ++i) {
      Index index(static_cast<size_t>(shape.size()));
      int64_t rest = i;
      for (int d = shape.size() - 1; d >= 0; --d) {
        index[static_cast<size_t>(d)] = rest % shape[d];
        rest /= shape[d];
      }
      out.data()[i] = f(in, index);
    }
    return out;
  };
}

OpCase exact(OpCase c) {  // these operators move values and never round them
  c.float32 = c.float64 = c.float16 = c.bfloat16 = {0, 0};
  return c;
}

double cat_value(const Doubles& in, Index index, size_t dim) {
  for (const auto& x : in) {
    const int64_t n = x.shape()[static_cast<int>(dim)];
    if (index[dim] < n) return at(x, index);
    index[dim] -= n;
  }
  return 0;
}

const Register concat_cases([](const auto& add) {
  add(exact(differentiable(
      "cat/rows", {{{2, 3}}, {{1, 3}}, {{4, 3}}}, [](const auto& in) { return cat(in, 0); },
      indexed({7, 3}, [](const Doubles& in, Index i) { return cat_value(in, std::move(i), 0); }))));
  add(exact(differentiable(
      "cat/inner_with_empty", {{{2, 3, 2}}, {{2, 0, 2}}, {{2, 1, 2}}},
      [](const auto& in) { return cat(in, 1); }, indexed({2, 4, 2}, [](const Doubles& in, Index i) {
        return cat_value(in, std::move(i), 1);
      }))));
  add(exact(differentiable(
      "cat/last_dim", {{{3, 5}}, {{3, 1}}}, [](const auto& in) { return cat(in, -1); },
      indexed({3, 6}, [](const Doubles& in, Index i) { return cat_value(in, std::move(i), 1); }))));
  add(exact(differentiable(
      "stack/first", {{{3, 2}}, {{3, 2}}}, [](const auto& in) { return stack(in); },
      indexed({2, 3, 2}, [](const Doubles& in, const Index& i) {
        return at(in[static_cast<size_t>(i[0])], {i[1], i[2]});
      }))));
  add(exact(differentiable(
      "stack/last", {{{3, 2}}, {{3, 2}}, {{3, 2}}}, [](const auto& in) { return stack(in, -1); },
      indexed({3, 2, 3}, [](const Doubles& in, const Index& i) {
        return at(in[static_cast<size_t>(i[2])], {i[0], i[1]});
      }))));
  add(exact(differentiable(
      "split/second_piece", {{{3, 7}}}, [](const auto& in) { return split(in[0], 3, 1).at(1); },
      indexed({3, 3}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0], i[1] + 3});
      }))));
  add(exact(differentiable(
      "split/sizes", {{{6, 2}}},
      [](const auto& in) {
        return split(in[0], {1, 3, 2}).at(2);
      },
      indexed({2, 2}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0] + 4, i[1]});
      }))));
  add(exact(differentiable(
      "chunk/last_is_smaller", {{{2, 5}}}, [](const auto& in) { return chunk(in[0], 2, 1).at(1); },
      indexed({2, 2}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0], i[1] + 3});
      }))));
  OpCase large = exact(differentiable(
      "cat/large", {{{256, 300}}, {{256, 212}}}, [](const auto& in) { return cat(in, 1); },
      indexed({256, 512},
              [](const Doubles& in, Index i) { return cat_value(in, std::move(i), 1); })));
  large.gradient = false;  // covered by the small ones
  large.benchmark = true;
  add(std::move(large));
});

// Index in the input of a padded index, or -1 outside.
int64_t source(int64_t i, int64_t before, int64_t n, PadMode mode) {
  i -= before;
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PadMode::reflect: return i < 0 ? -i : 2 * (n - 1) - i;
    case PadMode::replicate: return i < 0 ? 0 : n - 1;
    case PadMode::circular: return (i + n) % n;
    default: return -1;
  }
}

OpCase pad_2d(const std::string& name, const PadSizes& p, PadMode mode, double value) {
  const Shape shape{2, 3, 4 + p[2] + p[3], 5 + p[0] + p[1]};
  return exact(differentiable(
      "pad/" + name, {{{2, 3, 4, 5}}},
      [p, mode, value](const auto& in) { return pad(in[0], p, mode, value); },
      indexed(shape, [p, mode, value](const Doubles& in, Index i) {
        i[2] = source(i[2], p[2], 4, mode);
        i[3] = source(i[3], p[0], 5, mode);
        return i[2] < 0 || i[3] < 0 ? value : at(in[0], i);
      })));
}

const Register pad_cases([](const auto& add) {
  add(pad_2d("constant", {1, 2, 3, 0}, PadMode::constant, 0));
  add(pad_2d("constant_value", {0, 1, 2, 1}, PadMode::constant, 1.5));
  add(pad_2d("constant_cuts", {-1, 2, 1, -2}, PadMode::constant, 0));
  add(pad_2d("reflect", {2, 4, 3, 1}, PadMode::reflect, 0));
  add(pad_2d("replicate", {2, 7, 0, 3}, PadMode::replicate, 0));
  add(pad_2d("circular", {5, 2, 1, 4}, PadMode::circular, 0));
  add(exact(differentiable(
      "pad/reflect_1d_one_side", {{{4}}},
      [](const auto& in) {
        return pad(in[0], {0, 2}, PadMode::reflect);
      },
      indexed({6}, [](const Doubles& in, const Index& i) {
        return at(in[0], {source(i[0], 0, 4, PadMode::reflect)});
      }))));
  add(exact(differentiable(
      "pad/empty_input", {{{0, 2}}},
      [](const auto& in) {
        return pad(in[0], {0, 0, 1, 1}, PadMode::constant, 3);
      },
      indexed({2, 2}, [](const Doubles&, const Index&) { return 3.0; }))));
  OpCase large = exact(differentiable(
      "pad/large", {{{32, 16, 32, 32}}},
      [](const auto& in) {
        return pad(in[0], {4, 4, 4, 4});
      },
      indexed({32, 16, 40, 40}, [](const Doubles& in, Index i) {
        i[2] = source(i[2], 4, 32, PadMode::constant);
        i[3] = source(i[3], 4, 32, PadMode::constant);
        return i[2] < 0 || i[3] < 0 ? 0.0 : at(in[0], i);
      })));
  large.gradient = false;
  large.benchmark = true;
  add(std::move(large));
});

const Register roll_flip_cases([](const auto& add) {
  add(exact(differentiable(
      "roll/one_dim", {{{3, 5}}}, [](const auto& in) { return roll(in[0], {2}, {1}); },
      indexed({3, 5}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0], (i[1] + 3) % 5});
      }))));
  add(exact(differentiable(
      "roll/two_dims_negative", {{{3, 5, 2}}},
      [](const auto& in) {
        return roll(in[0], {-1, 7}, {0, 1});
      },
      indexed({3, 5, 2}, [](const Doubles& in, const Index& i) {
        return at(in[0], {(i[0] + 1) % 3, (i[1] + 3) % 5, i[2]});
      }))));
  add(exact(differentiable(
      "roll/flattened", {{{2, 3}}}, [](const auto& in) { return roll(in[0], {1}); },
      indexed({2, 3}, [](const Doubles& in, const Index& i) {
        return in[0].data()[(i[0] * 3 + i[1] + 5) % 6];
      }))));
  add(exact(differentiable(
      "flip/one_dim", {{{3, 4}}}, [](const auto& in) { return flip(in[0], {0}); },
      indexed({3, 4}, [](const Doubles& in, const Index& i) {
        return at(in[0], {2 - i[0], i[1]});
      }))));
  add(exact(differentiable(
      "flip/two_dims", {{{3, 4, 2}}},
      [](const auto& in) {
        return flip(in[0], {0, -1});
      },
      indexed({3, 4, 2}, [](const Doubles& in, const Index& i) {
        return at(in[0], {2 - i[0], i[1], 1 - i[2]});
      }))));
});

const Register view_cases([](const auto& add) {
  add(exact(differentiable(
      "unfold/overlapping", {{{2, 7}}}, [](const auto& in) { return unfold(in[0], 1, 3, 2); },
      indexed({2, 3, 3}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0], 2 * i[1] + i[2]});
      }))));
  add(exact(differentiable(
      "diagonal/shifted", {{{3, 5}}}, [](const auto& in) { return diagonal(in[0], 2); },
      indexed({3}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[0], i[0] + 2});
      }))));
  add(exact(differentiable(
      "expand/two_dims", {{{3, 1}}},
      [](const auto& in) {
        return expand(in[0], {2, 3, 4});
      },
      indexed({2, 3, 4}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[1], 0});
      }))));
  add(exact(differentiable(
      "reshape/across_rows", {{{4, 6}}},
      [](const auto& in) {
        return reshape(in[0], {3, -1});
      },
      indexed({3, 8},
              [](const Doubles& in, const Index& i) { return in[0].data()[i[0] * 8 + i[1]]; }))));
  add(exact(differentiable(
      "permute/three_dims", {{{2, 3, 4}}},
      [](const auto& in) {
        return permute(in[0], {2, 0, 1});
      },
      indexed({4, 2, 3}, [](const Doubles& in, const Index& i) {
        return at(in[0], {i[1], i[2], i[0]});
      }))));
});

}  // namespace
}  // namespace gable::cases
