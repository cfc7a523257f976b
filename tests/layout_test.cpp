// SPDX-License-Identifier: Apache-2.0
// Property tests of Layout: random chains of views against a model that lists every offset.
#include "gable/core/layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace gable {
namespace {

using Index = std::vector<int64_t>;

// Shape and the offset of every element in row-major order; knows no strides.
struct Model {
  Shape shape;
  std::vector<int64_t> offsets;

  [[nodiscard]] Index index_of(int64_t flat) const {
    Index index(static_cast<size_t>(shape.size()));
    for (int d = shape.size() - 1; d >= 0; --d) {
      index[static_cast<size_t>(d)] = flat % shape[d];
      flat /= shape[d];
    }
    return index;
  }
  [[nodiscard]] int64_t at(const Index& index) const {
    int64_t flat = 0;
    for (int d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[static_cast<size_t>(d)];
    return offsets[static_cast<size_t>(flat)];
  }
  // A new shape whose element at i is this model's element at source(i).
  [[nodiscard]] Model gather(const Shape& to, const std::function<Index(Index)>& source) const {
    Model out{to, {}};
    for (int64_t i = 0; i < numel(to); ++i) out.offsets.push_back(at(source(out.index_of(i))));
    return out;
  }
};

Model model_of(const Layout& dense) {
  Model m{dense.shape(), {}};
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const Index index = m.index_of(i);
    int64_t at = dense.offset();
    for (int d = 0; d < dense.rank(); ++d) at += index[static_cast<size_t>(d)] * dense.strides()[d];
    m.offsets.push_back(at);
  }
  return m;
}

bool counts_up(const std::vector<int64_t>& v) {
  for (size_t i = 1; i < v.size(); ++i)
    if (v[i] != v[0] + static_cast<int64_t>(i)) return false;
  return true;
}

// Offsets in the order of (N, spatial..., C).
std::vector<int64_t> channels_last_visit(const Model& m) {
  Shape moved;
  for (int d = 0; d < m.shape.size(); ++d)
    if (d != 1) moved.push_back(m.shape[d]);
  moved.push_back(m.shape[1]);
  return m
      .gather(moved,
              [](Index i) {
                const int64_t channel = i.back();
                i.pop_back();
                i.insert(i.begin() + 1, channel);
                return i;
              })
      .offsets;
}

void expect_agrees(const Layout& l, const Model& m, const std::string& what) {
  ASSERT_EQ(concat(l.shape()), concat(m.shape)) << what;
  ASSERT_EQ(l.numel(), static_cast<int64_t>(m.offsets.size())) << what;
  for (int64_t i = 0; i < l.numel(); ++i)
    ASSERT_EQ(l.offset_of(m.index_of(i)), m.offsets[static_cast<size_t>(i)]) << what << " at " << i;

  const bool empty = m.offsets.empty();
  EXPECT_EQ(l.is_contiguous(), counts_up(m.offsets)) << what;
  EXPECT_EQ(l.is_channels_last(),
            m.shape.size() >= 3 && (empty || counts_up(channels_last_visit(m))))
      << what;
  std::vector<int64_t> sorted = m.offsets;
  std::sort(sorted.begin(), sorted.end());
  const bool unique = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  EXPECT_EQ(l.overlaps_itself(), !unique) << what;
  EXPECT_EQ(l.is_dense(), empty || (counts_up(sorted) && m.offsets[0] == sorted[0])) << what;

  const Extent e = l.extent();
  if (empty) {
    EXPECT_LT(e.high, e.low) << what;
  } else {
    EXPECT_EQ(e.low, sorted.front()) << what;
    EXPECT_EQ(e.high, sorted.back()) << what;
  }

  const Layout c = l.coalesce();
  EXPECT_LE(c.rank(), l.rank());
  EXPECT_EQ(model_of(c).offsets, m.offsets) << what << " coalesced " << concat(c);

  const Layout like = l.like();
  EXPECT_TRUE(like.is_dense()) << what;
  EXPECT_EQ(like.offset(), 0);
  EXPECT_EQ(concat(like.shape()), concat(l.shape()));
  if (l.is_dense() && !empty) {
    std::vector<int64_t> moved = m.offsets;
    for (int64_t& o : moved) o -= sorted[0];
    EXPECT_EQ(model_of(like).offsets, moved) << what << " like " << concat(like);
  }
}

class Chain {
 public:
  explicit Chain(unsigned seed) : random_(seed) {
    Shape shape;
    const int rank = pick(0, kMaxRank);
    for (int d = 0; d < rank; ++d) {
      const int64_t size = pick(0, 12) == 0 ? pick(0, 1) : pick(1, rank > 4 ? 3 : 6);
      shape.push_back(numel(shape) * size > 600 ? 1 : size);
    }
    const bool channels_last = rank >= 3 && pick(0, 2) == 0;
    layout_ = Layout(shape, channels_last ? MemoryFormat::channels_last : MemoryFormat::row_major)
                  .with_offset(pick(0, 9));
    model_ = model_of(layout_);
    what_ = concat(layout_);
  }

  void run(int steps) {
    expect_agrees(layout_, model_, what_);
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step();
      expect_agrees(layout_, model_, what_);
    }
  }

 private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  int pick(int low, int high) {
    return static_cast<int>(pick(static_cast<int64_t>(low), static_cast<int64_t>(high)));
  }
  int64_t maybe_negative(int d) { return pick(0, 1) == 0 ? d : d - layout_.rank(); }
  void become(const Layout& l, Model m, const std::string& what) {
    layout_ = l;
    model_ = std::move(m);
    what_ += "; " + what;
  }
  // Index map that changes one coordinate.
  static std::function<Index(Index)> on(int d, std::function<int64_t(int64_t)> f) {
    return [d, f = std::move(f)](Index i) {
      i[static_cast<size_t>(d)] = f(i[static_cast<size_t>(d)]);
      return i;
    };
  }

  void step() {
    const int rank = layout_.rank();
    const int kind = pick(0, 11);
    if (kind == 0 && rank < kMaxRank) return unsqueeze();
    if (kind == 1) return expand();
    if (kind == 2) return view();
    if (rank == 0) return;
    const int d = pick(0, rank - 1);
    switch (kind) {
      case 3: return narrow(d);
      case 4: return select(d);
      case 5: return slice(d);
      case 6: return transpose(d, pick(0, rank - 1));
      case 7: return permute();
      case 8: return squeeze(d);
      case 9: return rank < kMaxRank ? unfold(d) : void();
      case 10: return rank > 1 ? diagonal() : void();
      default: return flip(d);
    }
  }

  void narrow(int d) {
    const int64_t n = layout_.shape()[d];
    const int64_t start = pick(int64_t{0}, n);
    const int64_t length = pick(int64_t{0}, n - start) | (start < n ? 1 : 0);
    if (start + length > n) return;
    const int64_t given = start < n && pick(0, 1) == 0 ? start - n : start;
    Shape shape = model_.shape;
    shape[d] = length;
    become(layout_.narrow(maybe_negative(d), given, length),
           model_.gather(shape, on(d, [=](int64_t i) { return i + start; })),
           concat("narrow ", d, " ", given, " ", length));
  }
  void select(int d) {
    const int64_t n = layout_.shape()[d];
    if (n == 0) return;
    const int64_t at = pick(int64_t{0}, n - 1);
    Shape shape = model_.shape;
    shape.erase(d);
    become(layout_.select(maybe_negative(d), pick(0, 1) == 0 ? at : at - n),
           model_.gather(shape,
                         [=](Index i) {
                           i.insert(i.begin() + d, at);
                           return i;
                         }),
           concat("select ", d, " ", at));
  }
  void slice(int d) {
    const int64_t n = layout_.shape()[d];
    std::optional<int64_t> start;
    std::optional<int64_t> stop;
    if (pick(0, 1) == 0) start = pick(-n - 2, n + 2);
    if (pick(0, 2) == 0) stop = pick(-n - 2, n + 2);
    int64_t by = pick(int64_t{-3}, int64_t{3});
    if (by == 0) by = 2;
    // Python's rule, element by element.
    auto bound = [&](int64_t i) {
      if (i < 0) i += n;
      return by > 0 ? std::clamp<int64_t>(i, 0, n) : std::clamp<int64_t>(i, -1, n - 1);
    };
    std::vector<int64_t> taken;
    const int64_t from = start ? bound(*start) : by > 0 ? 0 : n - 1;
    const int64_t to = stop ? bound(*stop) : by > 0 ? n : -1;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by) taken.push_back(i);
    Shape shape = model_.shape;
    shape[d] = static_cast<int64_t>(taken.size());
    become(layout_.slice(maybe_negative(d), start, stop, by),
           model_.gather(shape, on(d, [=](int64_t i) { return taken[static_cast<size_t>(i)]; })),
           concat("slice ", d, " by ", by, " from ", from, " to ", to));
  }
  void transpose(int a, int b) {
    Shape shape = model_.shape;
    std::swap(shape[a], shape[b]);
    become(layout_.transpose(maybe_negative(a), maybe_negative(b)),
           model_.gather(shape,
                         [=](Index i) {
                           std::swap(i[static_cast<size_t>(a)], i[static_cast<size_t>(b)]);
                           return i;
                         }),
           concat("transpose ", a, " ", b));
  }
  void permute() {
    std::vector<int64_t> order;
    for (int d = 0; d < layout_.rank(); ++d) order.push_back(d);
    std::shuffle(order.begin(), order.end(), random_);
    Shape shape;
    for (const int64_t d : order) shape.push_back(model_.shape[static_cast<int>(d)]);
    become(layout_.permute(Dims(std::span<const int64_t>(order))),
           model_.gather(shape,
                         [=](const Index& i) {
                           Index source(i.size());
                           for (size_t d = 0; d < i.size(); ++d)
                             source[static_cast<size_t>(order[d])] = i[d];
                           return source;
                         }),
           "permute");
  }
  void squeeze(int d) {
    if (model_.shape[d] != 1) {
      EXPECT_EQ(layout_.squeeze(d), layout_);
      return;
    }
    Shape shape = model_.shape;
    shape.erase(d);
    become(layout_.squeeze(maybe_negative(d)),
           model_.gather(shape,
                         [=](Index i) {
                           i.insert(i.begin() + d, 0);
                           return i;
                         }),
           concat("squeeze ", d));
  }
  void unsqueeze() {
    const int d = pick(0, layout_.rank());
    Shape shape = model_.shape;
    shape.insert(d, 1);
    become(layout_.unsqueeze(pick(0, 1) == 0 ? d : d - layout_.rank() - 1),
           model_.gather(shape,
                         [=](Index i) {
                           i.erase(i.begin() + d);
                           return i;
                         }),
           concat("unsqueeze ", d));
  }
  void expand() {
    Shape shape = model_.shape;
    for (int64_t& s : shape)
      if (s == 1 && pick(0, 1) == 0) s = pick(0, 3);
    const int lead = shape.size() < kMaxRank ? pick(0, 1) : 0;
    if (lead > 0) shape.insert(0, pick(1, 2));
    if (numel(shape) > 600) return;
    const Shape from = model_.shape;
    become(layout_.expand(shape),
           model_.gather(shape,
                         [=](Index i) {
                           i.erase(i.begin(), i.begin() + lead);
                           for (int d = 0; d < from.size(); ++d)
                             if (from[d] == 1) i[static_cast<size_t>(d)] = 0;
                           return i;
                         }),
           concat("expand ", shape));
  }
  // A random factorisation of the element count; where view() refuses, no strides may exist.
  void view() {
    Shape shape;
    int64_t rest = layout_.numel();
    while (rest > 1 && shape.size() < kMaxRank - 2) {
      std::vector<int64_t> divisors;
      for (int64_t f = 2; f <= rest; ++f)
        if (rest % f == 0) divisors.push_back(f);
      shape.push_back(divisors[static_cast<size_t>(
          pick(int64_t{0}, static_cast<int64_t>(divisors.size()) - 1))]);
      rest /= shape.back();
    }
    if (rest != 1) shape.push_back(rest);  // also the 0 of an empty one
    if (pick(0, 2) == 0) shape.insert(pick(0, shape.size()), 1);
    Model m{shape, model_.offsets};
    const auto viewed = layout_.view(shape);
    if (viewed) return become(*viewed, std::move(m), concat("view ", shape));
    // The only candidates are the differences between neighbours.
    Strides strides = Dims::filled(shape.size(), 1);
    for (int d = 0; d < shape.size(); ++d) {
      if (shape[d] == 1) continue;
      Index neighbour(static_cast<size_t>(shape.size()), 0);
      neighbour[static_cast<size_t>(d)] = 1;
      strides[d] = m.at(neighbour) - m.offsets[0];
    }
    EXPECT_NE(model_of(Layout(shape, strides, m.offsets[0])).offsets, m.offsets)
        << what_ << "; view " << concat(shape) << " refused";
  }
  void unfold(int d) {
    const int64_t n = model_.shape[d];
    const int64_t size = pick(int64_t{0}, n);
    const int64_t by = pick(int64_t{1}, int64_t{3});
    Shape shape = model_.shape;
    shape[d] = 0;
    for (int64_t start = 0; start + size <= n; start += by) ++shape[d];
    shape.push_back(size);
    if (numel(shape) > 2000) return;
    become(layout_.unfold(maybe_negative(d), size, by),
           model_.gather(shape,
                         [=](Index i) {
                           const int64_t inside = i.back();
                           i.pop_back();
                           i[static_cast<size_t>(d)] = i[static_cast<size_t>(d)] * by + inside;
                           return i;
                         }),
           concat("unfold ", d, " ", size, " ", by));
  }
  void diagonal() {
    const int a = pick(0, layout_.rank() - 1);
    int b = pick(0, layout_.rank() - 1);
    if (a == b) b = (a + 1) % layout_.rank();
    const int64_t shift = pick(int64_t{-3}, int64_t{3});
    int64_t length = 0;
    while (length + std::max<int64_t>(-shift, 0) < model_.shape[a] &&
           length + std::max<int64_t>(shift, 0) < model_.shape[b])
      ++length;
    Shape shape;
    for (int d = 0; d < layout_.rank(); ++d)
      if (d != a && d != b) shape.push_back(model_.shape[d]);
    shape.push_back(length);
    const int rank = layout_.rank();
    become(layout_.diagonal(shift, a, b),
           model_.gather(shape,
                         [=](const Index& i) {
                           Index source;
                           size_t next = 0;
                           for (int d = 0; d < rank; ++d) {
                             if (d == a)
                               source.push_back(i.back() + std::max<int64_t>(-shift, 0));
                             else if (d == b)
                               source.push_back(i.back() + std::max<int64_t>(shift, 0));
                             else
                               source.push_back(i[next++]);
                           }
                           return source;
                         }),
           concat("diagonal ", shift, " ", a, " ", b));
  }
  void flip(int d) {
    const int64_t n = model_.shape[d];
    become(layout_.flip({maybe_negative(d)}),
           model_.gather(model_.shape, on(d, [=](int64_t i) { return n - 1 - i; })),
           concat("flip ", d));
  }

  std::mt19937 random_;
  Layout layout_;
  Model model_;
  std::string what_;
};

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
