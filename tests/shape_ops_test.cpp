// SPDX-License-Identifier: Apache-2.0
// cat, stack, split, chunk, pad, flip, roll: out forms, other dtypes, memory order, errors.
#include <gtest/gtest.h>

#include "gable/autograd/apply.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/ops/concat.hpp"
#include "gable/ops/pad.hpp"

namespace gable {
namespace {

using Ints = std::vector<int32_t>;

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing thrown";
}
void expect_has(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST(ShapeOps, CatOfEveryDtype) {
  AllTypes::for_each([]<class T>(TypeTag<T>) {
    const auto a = ones<T>({2, 1});
    const auto b = zeros<T>({2, 2});
    const auto y = cat({a, b, a}, 1);
    EXPECT_EQ(y.shape(), (Shape{2, 4}));
    const T one = convert<T>(1);
    EXPECT_EQ(y.to_vector(), (std::vector<T>{one, T{}, T{}, one, one, T{}, T{}, one}));
    EXPECT_EQ(stack({b, b}, 1).shape(), (Shape{2, 2, 2}));
  });
}

TEST(ShapeOps, CatKeepsChannelsLastAndCopiesNothingHidden) {
  const auto a = full<float>({2, 3, 4, 4}, 1, {.format = MemoryFormat::channels_last});
  const auto b = full<float>({2, 2, 4, 4}, 2, {.format = MemoryFormat::channels_last});
  reset_copy_stats();
  const auto y = cat({a, b}, 1);
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(cat({a, b.contiguous()}, 1).is_contiguous());
  EXPECT_TRUE(pad(a, {1, 1}).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(pad(a, {1, 1}, PadMode::reflect).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(roll(a, {1}, {2}).is_contiguous(MemoryFormat::channels_last));
  EXPECT_EQ(copy_stats().hidden_copies, 0);
}

TEST(ShapeOps, CatGradientsAreViews) {
  const Variable<float> a(zeros<float>({2, 2}), true);
  const Variable<float> b(zeros<float>({1, 2}), true);
  const Variable<float> constant(zeros<float>({1, 2}));
  const auto y = cat({a, constant, b});
  y.backward(arange<float>(8).view({4, 2}));
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(b.grad().to_vector(), (std::vector<float>{6, 7}));
  const Variable<float> twice = stack({a, a});
  a.zero_grad();
  twice.backward(arange<float>(8).view({2, 2, 2}));
  EXPECT_EQ(a.grad().to_vector(), (std::vector<float>{4, 6, 8, 10}));
  EXPECT_FALSE(cat({constant, constant}).requires_grad());
}

TEST(ShapeOps, ManyInputs) {
  std::vector<Variable<float>> xs;
  for (int i = 0; i < 100; ++i)
    xs.emplace_back(full<float>({1}, static_cast<float>(i)), i % 2 == 0);
  const auto y = cat(xs);
  y.backward(arange<float>(100));
  EXPECT_EQ(xs[98].grad().item(), 98);
  EXPECT_EQ(xs[0].grad().item(), 0);
}

TEST(ShapeOps, OutFormsWithOverlap) {
  const auto x = arange<int32_t>(6);
  cat_out(x, {x.narrow(0, 3, 3), x.narrow(0, 0, 3)});
  EXPECT_EQ(x.to_vector(), (Ints{3, 4, 5, 0, 1, 2}));
  const auto m = arange<int32_t>(4).view({2, 2});
  stack_out(m, {m.select(0, 1), m.select(0, 0)});
  EXPECT_EQ(m.to_vector(), (Ints{2, 3, 0, 1}));
  const auto p = arange<int32_t>(6);
  pad_out(p, p.narrow(0, 2, 3), {2, 1}, PadMode::constant, 9);
  EXPECT_EQ(p.to_vector(), (Ints{9, 9, 2, 3, 4, 9}));
  pad_out(p, p.narrow(0, 2, 3), {2, 1}, PadMode::reflect);
  EXPECT_EQ(p.to_vector(), (Ints{4, 3, 2, 3, 4, 3}));
  const auto r = arange<int32_t>(5);
  roll_out(r, r, {2}, {0});
  EXPECT_EQ(r.to_vector(), (Ints{3, 4, 0, 1, 2}));
  const auto strided = zeros<int32_t>({3, 4});
  cat_out(strided.t(), {ones<int32_t>({1, 3}), full<int32_t>({3, 3}, 2)});
  EXPECT_EQ(strided.to_vector(), (Ints{1, 2, 2, 2, 1, 2, 2, 2, 1, 2, 2, 2}));
}

TEST(ShapeOps, SplitAndChunkSizes) {
  const auto x = arange<int32_t>(7);
  auto sizes = [](const auto& pieces) {
    Ints out;
    for (const auto& p : pieces) out.push_back(static_cast<int32_t>(p.numel()));
    return out;
  };
  EXPECT_EQ(sizes(split(x, 3)), (Ints{3, 3, 1}));
  EXPECT_EQ(sizes(split(x, 7)), (Ints{7}));
  EXPECT_EQ(sizes(split(x, {0, 7})), (Ints{0, 7}));
  EXPECT_EQ(sizes(chunk(x, 3)), (Ints{3, 3, 1}));
  EXPECT_EQ(sizes(chunk(x, 10)), (Ints{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(sizes(chunk(zeros<int32_t>({0}), 2)), (Ints{0}));
  EXPECT_TRUE(split(x, 3)[1].any().storage() == x.any().storage());
}

TEST(ShapeOps, RollEdges) {
  const auto x = arange<int32_t>(4);
  EXPECT_EQ(roll(x, {0}, {0}).to_vector(), (Ints{0, 1, 2, 3}));
  EXPECT_EQ(roll(x, {-9}, {0}).to_vector(), (Ints{1, 2, 3, 0}));
  EXPECT_EQ(roll(scalar<int32_t>(5), {3}).item(), 5);
  EXPECT_EQ(roll(zeros<int32_t>({0, 2}), {1}, {1}).shape(), (Shape{0, 2}));
}

TEST(ShapeOps, PadTakesOtherTypes) {
  EXPECT_EQ(pad(ones<bool>({1}), {1, 1}).to_vector(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(pad(ones<uint8_t>({2}), {0, 1}, PadMode::constant, 255).to_vector(),
            (std::vector<uint8_t>{1, 1, 255}));
  EXPECT_EQ(pad(arange<int64_t>(3), {2, 2}, PadMode::circular).to_vector(),
            (std::vector<int64_t>{1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(pad(arange<int64_t>(3), {}).to_vector(), (std::vector<int64_t>{0, 1, 2}));
}

TEST(ShapeOps, Errors) {
  const auto x = zeros<float>({2, 3});
  const std::vector<Tensor<float>> none;
  expect_has(message_of<ShapeError>([&] { (void)cat(none); }), {"[cat]", "empty list"});
  expect_has(message_of<ShapeError>([&] {
               (void)cat({x, zeros<float>({2, 4})});
             }),
             {"[cat]", "(2, 3)", "(2, 4)"});
  expect_has(message_of<ShapeError>([&] {
               (void)cat({x, zeros<float>({2})}, 1);
             }),
             {"[cat]", "(2, 3)", "(2)"});
  expect_has(message_of<IndexError>([&] { (void)cat({x, x}, 2); }), {"[cat]", "got 2"});
  expect_has(message_of<ShapeError>([&] {
               (void)stack({x, x.t()});
             }),
             {"[stack]", "(2, 3)", "(3, 2)"});
  expect_has(message_of<ShapeError>([&] { cat_out(x, {x, x}); }), {"[cat]", "(4, 3)", "(2, 3)"});
  expect_has(message_of<ShapeError>([&] {
               cat_out(zeros<float>({1, 3}).expand({4, 3}), {x, x});
             }),
             {"[cat]", "overlap"});
  expect_has(message_of<ShapeError>([&] { (void)split(x, 0, 1); }), {"[split]", "got 0"});
  expect_has(message_of<ShapeError>([&] {
               (void)split(x, {1, 1}, 1);
             }),
             {"[split]", "(2, 3)", "(1, 1)"});
  expect_has(message_of<ShapeError>([&] { (void)split(x, {4, -1}, 1); }), {"[split]", "(4, -1)"});
  expect_has(message_of<ShapeError>([&] { (void)chunk(x, 0); }), {"[chunk]", "got 0"});
  expect_has(message_of<ShapeError>([&] { (void)pad(x, {1}); }), {"[pad]", "(1)", "(2, 3)"});
  expect_has(message_of<ShapeError>([&] {
               (void)pad(x, {1, 1, 1, 1, 1, 1});
             }),
             {"[pad]", "(2, 3)"});
  expect_has(message_of<ShapeError>([&] { (void)pad(x, {-2, -2}); }), {"[pad]", "(-2, -2)"});
  expect_has(message_of<ShapeError>([&] { (void)pad(x, {-4, 9}); }), {"[pad]", "(-4, 9)"});
  expect_has(message_of<ShapeError>([&] {
               (void)pad(x, {3, 0}, PadMode::reflect);
             }),
             {"[pad]", "at most 2", "(2, 3)"});
  expect_has(message_of<ShapeError>([&] {
               (void)pad(x, {4, 0}, PadMode::circular);
             }),
             {"[pad]", "at most 3"});
  expect_has(message_of<ShapeError>([&] {
               (void)pad(zeros<float>({0}), {1, 0}, PadMode::replicate);
             }),
             {"[pad]", "(0)"});
  expect_has(message_of<ShapeError>([&] { (void)pad(x, {INT64_MAX, INT64_MAX}); }), {"[pad]"});
  expect_has(message_of<ShapeError>([&] { (void)roll(x, {1, 2}); }), {"[roll]", "(1, 2)"});
  expect_has(message_of<ShapeError>([&] { (void)roll(x, {1, 2}, {0}); }), {"[roll]", "(1, 2)"});
  expect_has(message_of<ShapeError>([&] {
               (void)roll(x, {1, 2}, {0, -2});
             }),
             {"[roll]", "different"});
  expect_has(message_of<IndexError>([&] { (void)flip(x, {2}); }), {"[flip]", "got 2"});
  EXPECT_EQ(x.to_vector(), std::vector<float>(6, 0.0F));
}

}  // namespace
}  // namespace gable
