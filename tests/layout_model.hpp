// SPDX-License-Identifier: Apache-2.0
// A model of layouts that lists every offset, and random chains of views over both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gable/core/layout.hpp"

namespace gable::layout_model {

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

inline Model model_of(const Layout& dense) {
  Model m{dense.shape(), {}};
  for (int64_t i = 0; i < dense.numel(); ++i) {
    const Index index = m.index_of(i);
    int64_t at = dense.offset();
    for (int d = 0; d < dense.rank(); ++d) at += index[static_cast<size_t>(d)] * dense.strides()[d];
    m.offsets.push_back(at);
  }
  return m;
}

inline bool counts_up(const std::vector<int64_t>& v) {
  for (size_t i = 1; i < v.size(); ++i)
    if (v[i] != v[0] + static_cast<int64_t>(i)) return false;
  return true;
}

// Offsets in the order of (N, spatial..., C).
inline std::vector<int64_t> channels_last_visit(const Model& m) {
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

inline void expect_agrees(const Layout& l, const Model& m, const std::string& what) {
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

}  // namespace gable::layout_model
