// SPDX-License-Identifier: Apache-2.0
// Misuse of reductions, indexing, losses, modules, optimizers, schedules and gradcheck.
#include <cmath>

#include "gable/nn/conv.hpp"
#include "gable/nn/init.hpp"
#include "gable/nn/linear.hpp"
#include "gable/nn/norm.hpp"
#include "gable/nn/sequential.hpp"
#include "gable/ops/index.hpp"
#include "gable/ops/loss.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/softmax.hpp"
#include "gable/ops/sort.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/optim/clip.hpp"
#include "gable/optim/schedule.hpp"
#include "gable/optim/sgd.hpp"
#include "misuse.hpp"

namespace gable::misuse {
namespace {

using F = const Fixture&;
using V = Variable<float>;
const auto* const kShape = &typeid(ShapeError);
const auto* const kType = &typeid(TypeError);
const auto* const kIndex = &typeid(IndexError);
const auto* const kError = &typeid(Error);

Tensor<int64_t> labels(std::initializer_list<int64_t> values) { return from_data<int64_t>(values); }

TEST(Misuse, ReductionsAndIndexing) {
  run({
      {"maximum of nothing",
       [](F) {
         (void)max(zeros<float>({0, 3}), 0);
       },
       kShape,
       {"[max]", "(0, 3)"}},
      {"argmax of nothing",
       [](F) { (void)argmax(zeros<float>({0})); },
       kShape,
       {"[argmax]", "(0)"}},
      {"sum over a missing dimension", [](F f) { (void)sum(f.x, 2); }, kIndex, {"[sum]", "got 2"}},
      {"mean over one dimension twice",
       [](F f) {
         (void)mean(f.x, {0, -2});
       },
       kShape,
       {"[mean]", "(0, -2)"}},
      {"sum into another shape",
       [](F f) { sum_out(f.y, f.x, 0); },
       kShape,
       {"[sum]", "(3)", "(4)"}},
      {"norm of order 3", [](F f) { (void)norm(f.x, 3); }, kType, {"[norm]", "got 3"}},
      {"sum of nothing defined",
       [](F f) { (void)sum(f.undefined); },
       kShape,
       {"[sum]", "undefined"}},
      {"softmax over a missing dimension",
       [](F f) { (void)softmax(f.x, 2); },
       kIndex,
       {"[softmax]", "got 2"}},
      {"softmax into another shape",
       [](F f) { softmax_out(f.y, f.x, 1); },
       kShape,
       {"[softmax]", "(2, 3)", "(4)"}},
      {"mask of another shape",
       [](F f) { (void)masked_softmax(f.x, ones<bool>({4}), 1); },
       kShape,
       {"[masked_softmax]", "(2, 3)", "(4)"}},
      {"cumsum over a missing dimension",
       [](F f) { (void)cumsum(f.x, -3); },
       kIndex,
       {"[cumsum]", "got -3"}},
      {"gather past the end",
       [](F f) {
         (void)gather(f.y, 0, labels({1, 4}));
       },
       kIndex,
       {"[gather]", "4"}},
      {"gather with another rank",
       [](F f) { (void)gather(f.x, 0, labels({1})); },
       kShape,
       {"[gather]", "(2, 3)", "(1)"}},
      {"index_select past the end",
       [](F f) { (void)index_select(f.x, 0, labels({2})); },
       kIndex,
       {"[index_select]", "2"}},
      {"index_select by a matrix",
       [](F f) {
         (void)index_select(f.x, 0, zeros<int64_t>({1, 1}));
       },
       kShape,
       {"[index_select]", "(1, 1)"}},
      {"embedding of a vector",
       [](F f) { (void)embedding(f.y, labels({0})); },
       kShape,
       {"[embedding]", "(V, D)", "(4)"}},
      {"embedding past the end",
       [](F f) {
         (void)embedding(f.x, labels({0, 7}));
       },
       kIndex,
       {"[embedding]", "7"}},
      {"one_hot past the end",
       [](F) {
         (void)one_hot<float>(labels({0, 3}), 3);
       },
       kIndex,
       {"[one_hot]", "3"}},
      {"scatter_add past the end",
       [](F f) { (void)scatter_add(f.y, 0, labels({9}), ones<float>({1})); },
       kIndex,
       {"[scatter_add]", "9"}},
      {"top 5 of 4", [](F f) { (void)topk(f.y, 5); }, kShape, {"[topk]", "[0, 4]", "(4)", "got 5"}},
      {"sort along a missing dimension",
       [](F f) { (void)sort(f.y, 1); },
       kIndex,
       {"[sort]", "got 1"}},
  });
}

TEST(Misuse, Losses) {
  run({
      {"a target a row",
       [](F f) {
         (void)cross_entropy(f.x, labels({0, 1, 2}));
       },
       kShape,
       {"[cross_entropy]", "(2)", "(2, 3)", "(3)"}},
      {"class 3 of 3",
       [](F f) {
         (void)cross_entropy(f.x, labels({0, 3}));
       },
       kIndex,
       {"[cross_entropy]", "3"}},
      {"logits without classes",
       [](F f) { (void)cross_entropy(f.y, labels({0})); },
       kShape,
       {"[cross_entropy]", "(N, C, ...)", "(4)"}},
      {"smoothing of 2",
       [](F f) {
         (void)cross_entropy(f.x, labels({0, 1}), {.label_smoothing = 2});
       },
       kType,
       {"[cross_entropy]", "label_smoothing", "got 2"}},
      {"losses never broadcast",
       [](F f) {
         (void)mse_loss(f.y, f.y.view({4, 1}));
       },
       kShape,
       {"[mse_loss]", "(4)", "(4, 1)"}},
      {"l1 of other shapes",
       [](F f) { (void)l1_loss(f.x, f.y); },
       kShape,
       {"[l1_loss]", "(2, 3)", "(4)"}},
      {"target of another shape",
       [](F f) { (void)binary_cross_entropy_with_logits(f.x, f.y); },
       kShape,
       {"[binary_cross_entropy_with_logits]", "(2, 3)", "(4)"}},
  });
}

TEST(Misuse, Modules) {
  run({
      {"linear of other features",
       [](F f) { (void)nn::Linear<float>(4, 2)(V(f.x)); },
       kShape,
       {"[linear]", "(2, 3)", "(2, 4)"}},
      {"convolution of a matrix",
       [](F f) { (void)nn::Conv2d<float>(4, 2, 3)(V(f.x)); },
       kShape,
       {"[conv2d]", "(2, 3)"}},
      {"groups that do not divide",
       [](F) { (void)nn::Conv2d<float>(4, 2, 3, {.groups = 3}); },
       kType,
       {"[conv2d]", "3 groups", "4 and 2"}},
      {"batch norm of a matrix",
       [](F f) { (void)nn::BatchNorm2d<float>(3)(V(f.x)); },
       kShape,
       {"[batch_norm2d]", "(N, C, H, W)", "(2, 3)"}},
      {"batch norm of other channels",
       [](F f) { (void)nn::BatchNorm2d<float>(3)(V(f.image)); },
       kShape,
       {"[batch_norm]", "(4)", "(3)"}},
      {"layer norm of other features",
       [](F f) { (void)nn::LayerNorm<float>({4})(V(f.x)); },
       kShape,
       {"[layer_norm]", "(4)", "(2, 3)"}},
      {"index in a sequence",
       [](F) {
         nn::Sequential<float> s;
         (void)s[3];
       },
       kIndex,
       {"[sequential]", "got 3"}},
      {"state of another module",
       [](F) {
         nn::Linear<float> a(2, 3);
         a.load_state_dict(nn::Linear<float>(3, 2).state_dict());
       },
       kError,
       {"[load_state_dict]", "weight", "(3, 2)", "(2, 3)"}},
      {"state without a bias",
       [](F) {
         nn::Linear<float> a(2, 3);
         a.load_state_dict(nn::Linear<float>(2, 3, false).state_dict());
       },
       kError,
       {"[load_state_dict]", "missing", "bias"}},
      {"one name twice in a state dict",
       [](F f) {
         StateDict dict;
         dict.add("w", f.x);
         dict.add("w", f.y);
       },
       kError,
       {"[state_dict]", "\"w\""}},
  });
}

TEST(Misuse, FailedLoadsChangeNothing) {
  nn::Linear<float> linear(2, 3);
  const auto weight = linear.weight.value().to_vector();
  StateDict dict;
  dict.add("weight", zeros<float>({3, 2}));  // fits
  dict.add("bias", zeros<float>({4}));       // does not
  EXPECT_THROW(linear.load_state_dict(dict), Error);
  EXPECT_EQ(linear.weight.value().to_vector(), weight);
}

TEST(Misuse, Optimizers) {
  const Parameter<float> w(ones<float>({2}));
  const std::vector<AnyParameter> one = {w.any()};
  run({
      {"negative rate",
       [&](F) { (void)optim::SGD(one, {.lr = -1}); },
       kType,
       {"[sgd]", "lr", "-1"}},
      {"rate that is no number",
       [&](F) { (void)optim::AdamW(one, {.lr = NAN}); },
       kType,
       {"[adamw]", "lr", "nan"}},
      {"Nesterov without momentum",
       [&](F) { (void)optim::SGD(one, {.nesterov = true}); },
       kType,
       {"[sgd]", "momentum"}},
      {"beta of 1",
       [&](F) { (void)optim::AdamW(one, {.beta1 = 1}); },
       kType,
       {"[adamw]", "[0, 1)", "got 1"}},
      {"a parameter twice",
       [&](F) {
         (void)optim::SGD({w.any(), w.any()});
       },
       kType,
       {"[sgd]", "(2)", "twice"}},
      {"an undefined parameter",
       [](F) { (void)optim::SGD({AnyParameter()}); },
       kType,
       {"[sgd]", "undefined"}},
      {"rate of a missing group",
       [&](F) { (void)optim::SGD(one).lr(1); },
       kIndex,
       {"[sgd]", "got 1"}},
      {"gradient of another shape",
       [&](F f) {
         optim::SGD sgd(one);
         w.any().gradient() = f.y.any();
         sgd.step();
       },
       kShape,
       {"[sgd]", "(2)", "(4)"}},
      {"no norm", [&](F) { optim::clip_grad_norm(one, 0); }, kType, {"[clip_grad_norm]", "got 0"}},
      {"no limit",
       [&](F) { optim::clip_grad_value(one, -1); },
       kType,
       {"[clip_grad_value]", "got -1"}},
      {"step size 0",
       [](F) { (void)optim::StepDecay{.step_size = 0}(1); },
       kType,
       {"[step_decay]", "got 0"}},
      {"warm-up longer than the run",
       [](F) { (void)optim::CosineWarmup{.total_steps = 5, .warmup = 5}(1); },
       kType,
       {"[cosine_warmup]"}},
      {"negative step",
       [](F) { (void)optim::OneCycle{.total_steps = 5}(-1); },
       kType,
       {"[one_cycle]", "got -1"}},
  });
  EXPECT_EQ(w.value().to_vector(), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace gable::misuse
