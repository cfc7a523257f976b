// SPDX-License-Identifier: Apache-2.0
// Property tests of Layout against a model that lists every offset; errors; 64-bit borders.
#include "gable/core/layout.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "layout_model.hpp"

namespace gable {
namespace {

using layout_model::Chain;
using layout_model::expect_agrees;
using layout_model::model_of;

TEST(Layout, RandomChainsOfViewsMatchTheModel) {
  for (unsigned seed = 0; seed < 4000 && !HasFailure(); ++seed) Chain(seed).run(6);
}

TEST(Layout, RandomStridesMatchTheModel) {
  std::mt19937 random(5);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 4000 && !HasFailure(); ++round) {
    Shape shape;
    Strides strides;
    const int64_t rank = pick(0, 4);
    for (int64_t d = 0; d < rank; ++d) {
      shape.push_back(pick(1, 4));
      strides.push_back(pick(-7, 7));
    }
    const Layout l(shape, strides, 200);
    expect_agrees(l, model_of(l), concat(l));
  }
}

TEST(Layout, StridesOfSizeOneDimensionsDoNotMatter) {
  const Layout row({1, 4}, {12, 1}, 8);
  EXPECT_TRUE(row.is_contiguous());
  EXPECT_TRUE(row.is_dense());
  EXPECT_TRUE(Layout({2, 1, 3, 1}, {3, 99, 1, -5}, 0).is_contiguous());
  EXPECT_FALSE(Layout({1, 4}, {12, 2}, 0).is_contiguous());
  EXPECT_TRUE(Layout({5, 0, 3}).is_contiguous());
}

template <class E, class F>
void expect_throws(F&& f, std::initializer_list<const char*> parts) {
  try {
    f();
    ADD_FAILURE() << "nothing thrown";
  } catch (const E& e) {
    for (const char* part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << part << " in " << e.what();
  }
}

TEST(Layout, ErrorsSayWhatWasExpected) {
  const Layout l({2, 3});
  expect_throws<ShapeError>([] { (void)Layout({2, -1}); }, {"[layout]", "(2, -1)"});
  expect_throws<ShapeError>([&] { (void)Layout({2}, {1, 1}, 0); }, {"(2)", "(1, 1)"});
  expect_throws<IndexError>([&] { (void)l.narrow(0, -3, 1); }, {"[narrow]", "(2, 3)", "start -3"});
  expect_throws<IndexError>([&] { (void)l.narrow(1, 2, 2); }, {"[narrow]", "length 2"});
  expect_throws<IndexError>([&] { (void)l.narrow(1, 0, -1); }, {"[narrow]", "length -1"});
  expect_throws<IndexError>([&] { (void)l.narrow(2, 0, 1); }, {"[narrow]", "[-2, 1]", "got 2"});
  expect_throws<IndexError>([&] { (void)l.select(0, 2); }, {"[select]", "[-2, 1]", "got 2"});
  expect_throws<IndexError>([&] { (void)l.slice(0, 0, 1, 0); }, {"[slice]", "got 0"});
  expect_throws<ShapeError>([&] { (void)l.permute({0}); }, {"[permute]", "(2, 3)", "(0)"});
  expect_throws<ShapeError>([&] { (void)l.permute({0, 0}); }, {"[permute]", "(0, 0)"});
  expect_throws<IndexError>([&] { (void)l.transpose(0, 5); }, {"[transpose]", "got 5"});
  expect_throws<ShapeError>([&] { (void)l.expand({2, 4}); }, {"[expand]", "(2, 3)", "(2, 4)"});
  expect_throws<ShapeError>([&] { (void)l.expand({3}); }, {"[expand]", "(2, 3)", "(3)"});
  expect_throws<ShapeError>([&] { (void)l.expand({-1, 2, 3}); }, {"[expand]", "(-1, 2, 3)"});
  expect_throws<ShapeError>([&] { (void)l.view({4}); }, {"[view]", "(2, 3)", "(4)"});
  expect_throws<ShapeError>([&] { (void)l.view({-1, -1}); }, {"[view]", "(-1, -1)"});
  expect_throws<ShapeError>([&] { (void)l.view({-1, 4}); }, {"[view]", "(-1, 4)"});
  expect_throws<ShapeError>([&] { (void)Layout({0}).view({-1, 0}); }, {"[view]", "(-1, 0)"});
  expect_throws<ShapeError>([&] { (void)l.unfold(1, 4, 1); }, {"[unfold]", "size 3", "got 4"});
  expect_throws<ShapeError>([&] { (void)l.unfold(1, 2, 0); }, {"[unfold]", "got 0"});
  expect_throws<ShapeError>([&] { (void)l.diagonal(0, 1, -1); }, {"[diagonal]", "(2, 3)"});
  expect_throws<ShapeError>([&] { (void)l.flatten_shape(1, 0); }, {"[flatten]", "1 and 0"});
  expect_throws<IndexError>([] { (void)Layout(Shape{}).select(0, 0); }, {"[select]", "scalar"});
  expect_throws<ShapeError>([] { (void)Layout({2, 2}, MemoryFormat::channels_last); }, {"(2, 2)"});
  expect_throws<ShapeError>([] { (void)Dims{1, 1, 1, 1, 1, 1, 1, 1, 1}; }, {"8", "9"});
  const Layout eight(Dims::filled(8, 1));
  expect_throws<ShapeError>([&] { (void)eight.unsqueeze(0); }, {"8", "9"});
  expect_throws<ShapeError>(
      [] {
        (void)broadcast_shapes({2, 3}, {4, 3}, "add");
      },
      {"[add]", "(2, 3)", "(4, 3)"});
}

TEST(Layout, NothingWrapsAroundIn64Bits) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_THROW((void)Layout({kHuge, 2}), ShapeError);
  EXPECT_THROW((void)Layout({0, kHuge, 3}), ShapeError);  // the zero hides no overflow
  EXPECT_THROW((void)Layout({3}, {kHuge}, 0), ShapeError);
  EXPECT_THROW((void)Layout({2}, {kHuge}, 1), ShapeError);
  EXPECT_THROW((void)Layout({2}, {kLeast}, 0), ShapeError);
  EXPECT_THROW((void)Layout({1}).expand({kHuge, kHuge, 1}), ShapeError);
  EXPECT_THROW((void)Layout({2}).view({kHuge, kHuge}), ShapeError);
  EXPECT_NO_THROW((void)Layout({2}, {kHuge}, 0));

  // Views of layouts at the edge, which sanitizers watch.
  const Layout wide({2, 1}, {kHuge / 2 + 2, kHuge}, 0);
  EXPECT_EQ(wide.unsqueeze(0).shape(), (Shape{1, 2, 1}));
  EXPECT_EQ(wide.coalesce().rank(), 1);
  EXPECT_EQ(wide.diagonal(0, 0, 1).numel(), 1);
  EXPECT_TRUE(wide.view({1, 2}).has_value());
  EXPECT_FALSE(wide.overlaps_itself());
  const Layout hollow({0, 5, 5}, {1, kHuge, kHuge}, 3);
  for (const Layout& l :
       {hollow.narrow(1, 4, 1), hollow.select(1, 4), hollow.slice(1, 4, {}, -3), hollow.flip({1}),
        hollow.diagonal(2, 1, 2), hollow.unfold(1, 2, 3), hollow.unsqueeze(1), hollow.coalesce()})
    EXPECT_EQ(l.offset(), 3);
  EXPECT_THROW((void)Layout({2, 3}).narrow(0, kLeast, 1), IndexError);
  EXPECT_THROW((void)Layout({2, 3}).narrow(0, 1, kHuge), IndexError);
  EXPECT_EQ(Layout({4}).slice(0, kLeast, kHuge, kHuge).numel(), 1);
  EXPECT_EQ(Layout({4}).slice(0, kHuge, kLeast, -kHuge).numel(), 1);
  EXPECT_EQ(Layout({4, 4}).diagonal(kHuge, 0, 1).numel(), 0);
}

TEST(Layout, LongOverlapSearchStaysBounded) {
  // Interleaving strides without a collision: the search may give up, but must end.
  const Layout l(Dims::filled(8, 40), {1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049}, 0);
  EXPECT_TRUE(l.overlaps_itself());
}

TEST(Layout, TextHasEverything) {
  EXPECT_EQ(concat(Layout({2, 3}).transpose(0, 1)), "(3, 2) strides (1, 3) offset 0");
  EXPECT_EQ(concat(Layout(Shape{})), "() strides () offset 0");
}

}  // namespace
}  // namespace gable
