// SPDX-License-Identifier: Apache-2.0
// Misuse of writes, operators and the backward graph.
#include "misuse.hpp"

#include <cmath>
#include <cstdint>

#include "gable/autograd/checkpoint.hpp"
#include "gable/ops/batch_norm.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/conv.hpp"
#include "gable/ops/dropout.hpp"
#include "gable/ops/layer_norm.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/ops/pool.hpp"
#include "gable/ops/where.hpp"

namespace gable::misuse {
namespace {

using F = const Fixture&;
using V = Variable<float>;
const auto* const kShape = &typeid(ShapeError);
const auto* const kType = &typeid(TypeError);
const auto* const kError = &typeid(Error);

TEST(Misuse, WritesAndElementwise) {
  run({
      {"fill of an expanded tensor",
       [](F f) { f.y.narrow(0, 0, 1).expand({3}).fill_(1); },
       kShape,
       {"[fill_]", "overlap"}},
      {"copy onto windows",
       [](F f) {
         f.y.unfold(0, 2, 1).copy_(ones<float>({3, 2}));
       },
       kShape,
       {"[copy_]", "overlap"}},
      {"copy of another shape",
       [](F f) { f.x.copy_(f.m); },
       kShape,
       {"[copy_]", "(3, 4)", "(2, 3)"}},
      {"copy of nothing", [](F f) { f.x.copy_(f.undefined); }, kShape, {"[copy_]", "undefined"}},
      {"copy into nothing", [](F f) { f.undefined.copy_(f.x); }, kShape, {"[copy_]", "undefined"}},
      {"shapes that do not broadcast",
       [](F f) { (void)(f.x + f.y); },
       kShape,
       {"[add]", "(2, 3)", "(4)"}},
      {"undefined operand", [](F f) { (void)(f.x * f.undefined); }, kShape, {"[mul]", "undefined"}},
      {"in place on a smaller tensor",
       [](F f) { add_(f.x.select(0, 0), f.x); },
       kShape,
       {"[add]", "(2, 3)", "(3)"}},
      {"output of another shape",
       [](F f) { exp_out(f.y, f.x); },
       kShape,
       {"[exp]", "(2, 3)", "(4)"}},
      {"output that overlaps itself",
       [](F f) {
         exp_out(f.y.narrow(0, 0, 1).expand({2, 3}), f.x);
       },
       kShape,
       {"[exp]", "overlap"}},
      {"undefined output", [](F f) { exp_out(f.undefined, f.x); }, kShape, {"[exp]", "(2, 3)"}},
      {"comparison of other shapes",
       [](F f) { (void)lt(f.x, f.y); },
       kShape,
       {"[lt]", "(2, 3)", "(4)"}},
      {"condition of another shape",
       [](F f) { (void)where(ones<bool>({4}), f.x, f.x); },
       kShape,
       {"[where]", "(2, 3)", "(4)"}},
      {"mask of another shape",
       [](F f) { (void)masked_fill(f.x, ones<bool>({4}), 0); },
       kShape,
       {"[masked_fill]", "(4)", "(2, 3)"}},
      {"cast into another shape",
       [](F f) { cast_out(f.ints, f.y); },
       kShape,
       {"[cast]", "(4)", "(3)"}},
      {"dropout of 150 %",
       [](F f) { (void)dropout(f.x, 1.5); },
       kType,
       {"[dropout]", "[0, 1]", "1.5"}},
  });
}

TEST(Misuse, StructuralOperators) {
  run({
      {"inner sizes", [](F f) { (void)matmul(f.x, f.x); }, kShape, {"[matmul]", "(2, 3)"}},
      {"scalar operand",
       [](F f) { (void)matmul(f.x, scalar<float>(1)); },
       kShape,
       {"[matmul]", "rank 1", "()"}},
      {"batches",
       [](F) {
         (void)matmul(zeros<float>({2, 3, 4}), zeros<float>({3, 4, 5}));
       },
       kShape,
       {"[matmul]", "(2, 3, 4)", "(3, 4, 5)"}},
      {"product into another shape",
       [](F f) { matmul_out(f.x, f.x, f.m); },
       kShape,
       {"[matmul]", "(2, 4)", "(2, 3)"}},
      {"linear with a transposed weight",
       [](F f) { (void)linear(f.x, f.m); },
       kShape,
       {"[linear]", "(2, 3)", "(3, 4)"}},
      {"linear with a wrong bias",
       [](F f) { (void)linear(f.x, f.x, f.y); },
       kShape,
       {"[linear]", "(2)", "(4)"}},
      {"image of rank 2",
       [](F f) { (void)conv2d(f.x, f.filter); },
       kShape,
       {"[conv2d]", "(N, C, H, W)", "(2, 3)"}},
      {"other channels",
       [](F f) {
         (void)conv2d(f.image, ones<float>({2, 3, 3, 3}));
       },
       kShape,
       {"[conv2d]", "(2, 3, 3, 3)", "(1, 4, 5, 5)"}},
      {"kernel larger than the image",
       [](F f) {
         (void)conv2d(f.image, ones<float>({2, 4, 7, 7}));
       },
       kShape,
       {"[conv2d]", "(2, 4, 7, 7)", "(1, 4, 5, 5)"}},
      {"stride 0",
       [](F f) { (void)conv2d(f.image, f.filter, {.stride = 0}); },
       kShape,
       {"[conv2d]", "strides"}},
      {"negative padding",
       [](F f) { (void)conv2d(f.image, f.filter, {.padding = -1}); },
       kShape,
       {"[conv2d]", "padding"}},
      {"groups that do not divide",
       [](F f) { (void)conv2d(f.image, f.filter, {.groups = 3}); },
       kShape,
       {"[conv2d]", "3 groups"}},
      {"same padding with stride",
       [](F f) { (void)conv2d(f.image, f.filter, {.stride = 2, .padding = Padding::same}); },
       kShape,
       {"[conv2d]", "stride 1"}},
      {"convolution bias",
       [](F f) { (void)conv2d(f.image, f.filter, f.y); },
       kShape,
       {"[conv2d]", "(2)", "(4)"}},
      {"output padding",
       [](F f) {
         (void)conv_transpose2d(f.image, ones<float>({4, 2, 3, 3}), {.output_padding = 1});
       },
       kShape,
       {"[conv_transpose2d]", "output padding"}},
      {"pool larger than the image",
       [](F f) { (void)max_pool2d(f.image, 6); },
       kShape,
       {"[max_pool2d]", "(1, 4, 5, 5)"}},
      {"pool padding",
       [](F f) { (void)avg_pool2d(f.image, 2, {.padding = 2}); },
       kShape,
       {"[avg_pool2d]", "half the kernel"}},
      {"pool to nothing",
       [](F f) { (void)adaptive_avg_pool2d(f.image, 0); },
       kShape,
       {"[adaptive_avg_pool2d]", "(0, 0)"}},
      {"norm of other dimensions",
       [](F f) { (void)layer_norm(f.x, {4}); },
       kShape,
       {"[layer_norm]", "(4)", "(2, 3)"}},
      {"negative epsilon",
       [](F f) { (void)rms_norm(f.x, {3}, -1.0); },
       kType,
       {"[rms_norm]", "eps", "-1"}},
      {"batch norm of one value",
       [](F) {
         (void)batch_norm(ones<float>({1, 3}), {.training = true});
       },
       kShape,
       {"[batch_norm]", "more than one value", "(1, 3)"}},
      {"evaluation without statistics",
       [](F f) { (void)batch_norm(f.image, {.training = false}); },
       kType,
       {"[batch_norm]", "running statistics"}},
  });
}

TEST(Misuse, BackwardGraph) {
  run({
      {"backward of a constant",
       [](F f) { V(f.x).backward(); },
       kError,
       {"[backward]", "requires_grad", "(2, 3)"}},
      {"backward of many elements",
       [](F f) { (V(f.x, true) * 2).backward(); },
       kShape,
       {"[backward]", "one element", "(2, 3)"}},
      {"gradient of another shape",
       [](F f) { (V(f.x, true) * 2).backward(f.y); },
       kShape,
       {"[backward]", "(2, 3)", "(4)"}},
      {"gradient of a result",
       [](F f) { (void)(V(f.x, true) * 2).grad(); },
       kError,
       {"[grad]", "leaf", "mul"}},
      {"gradient of a constant",
       [](F f) { (void)V(f.x).grad(); },
       kError,
       {"[grad]", "a constant"}},
      {"integer leaf",
       [](F f) { (void)Variable<int32_t>(f.ints, true); },
       kType,
       {"[requires_grad]", "int32"}},
      {"undefined leaf",
       [](F f) { (void)V(f.undefined, true); },
       kShape,
       {"[requires_grad]", "undefined"}},
      {"set_grad of another shape",
       [](F f) { V(f.x, true).set_grad(f.y); },
       kShape,
       {"[set_grad]", "(2, 3)", "(4)"}},
      {"backward twice",
       [](F f) {
         const V leaf(f.y, true);
         const V v = leaf * leaf;
         v.backward(ones<float>({4}));
         v.backward(ones<float>({4}));
       },
       kError,
       {"[mul]", "retain_graph"}},
      {"write to a saved tensor",
       [](F f) {
         const V leaf(f.y.clone(), true);
         const V v = leaf * leaf;
         leaf.value().zero_();
         v.backward(ones<float>({4}));
       },
       kError,
       {"[mul]", "(4)", "modified in place"}},
      {"assign of another shape",
       [](F f) { Parameter<float>(f.x.clone()).assign(f.y); },
       kShape,
       {"[assign]", "(2, 3)", "(4)"}},
      {"undefined parameter",
       [](F) { (void)Parameter<float>().any(); },
       kShape,
       {"[parameter]", "undefined"}},
      {"variable view",
       [](F f) { (void)V(f.x, true).permute({1}); },
       kShape,
       {"[permute]", "(2, 3)", "(1)"}},
      {"variable operator",
       [](F f) { (void)matmul(V(f.x, true), f.x); },
       kShape,
       {"[matmul]", "(2, 3)"}},
      {"checkpoint of nothing",
       [](F) { (void)checkpoint([](const V& v) { return v; }, V()); },
       kShape,
       {"[checkpoint]", "undefined"}},
  });
}

}  // namespace
}  // namespace gable::misuse
