// SPDX-License-Identifier: Apache-2.0
// Tensors: creation, element access, copies between overlapping views (G01), as_strided bounds
// (G02), in-place rules, borrowed memory, the allocator, counters, state dicts.
#include "gable/tensor/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "errors.hpp"
#include "gable/memory/allocator.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/tensor/state_dict.hpp"

namespace gable {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

// --- creation

template <class T>
class Creation : public testing::Test {};
using Types = testing::Types<float, double, half, bfloat16, int32_t, int64_t, uint8_t, bool>;
TYPED_TEST_SUITE(Creation, Types);

TYPED_TEST(Creation, Fills) {
  using T = TypeParam;
  const T one = convert<T>(1);
  EXPECT_EQ(zeros<T>({2, 2}).to_vector(), std::vector<T>(4, T{}));
  EXPECT_EQ(ones<T>({3}).to_vector(), std::vector<T>(3, one));
  EXPECT_EQ(full<T>({3}, one).dtype(), dtype_of<T>);
  EXPECT_EQ(empty<T>({2, 0, 3}).numel(), 0);
  EXPECT_EQ(eye<T>(2, 3).to_vector(), (std::vector<T>{one, T{}, T{}, T{}, one, T{}}));
  EXPECT_EQ(eye<T>(0).shape(), (Shape{0, 0}));
  EXPECT_EQ(scalar<T>(one).item(), one);
  EXPECT_EQ(from_data<T>({one, T{}}).to_vector(), (std::vector<T>{one, T{}}));
  const auto nhwc = ones<T>({2, 3, 4, 5}, {.format = MemoryFormat::channels_last});
  EXPECT_TRUE(nhwc.is_contiguous(MemoryFormat::channels_last));
  for (const auto& like :
       {empty_like(nhwc), zeros_like(nhwc), ones_like(nhwc), full_like(nhwc, one)}) {
    EXPECT_TRUE(like.is_contiguous(MemoryFormat::channels_last));
    EXPECT_FALSE(like.any().storage() == nhwc.any().storage());
  }
  EXPECT_EQ(ones_like(nhwc.select(0, 0).t()).numel(), 60);
}

TYPED_TEST(Creation, Ranges) {
  using T = TypeParam;
  if constexpr (!std::is_same_v<T, bool>) {
    using C = Compute<T>;
    std::vector<T> want;
    for (int i = 0; i < 5; ++i) want.push_back(convert<T>(i));
    EXPECT_EQ(arange<T>(C{5}).to_vector(), want);
    EXPECT_EQ(arange<T>(C{2}, C{9}, C{3}).to_vector(),
              (std::vector<T>{convert<T>(2), convert<T>(5), convert<T>(8)}));
    EXPECT_EQ(arange<T>(C{3}, C{3}).numel(), 0);
    EXPECT_EQ(arange<T>(C{3}, C{1}).numel(), 0);
    EXPECT_THROW((void)arange<T>(C{0}, C{1}, C{0}), TypeError);
  }
}

TEST(Tensor, RangeEdges) {
  EXPECT_EQ(arange<int32_t>(5, 0, -2).to_vector(), (Ints{5, 3, 1}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(arange<int64_t>(kMost - 2, kMost, 1).to_vector(),
            (std::vector<int64_t>{kMost - 2, kMost - 1}));
  EXPECT_EQ(arange<int64_t>(-kMost, kMost, kMost).to_vector(), (std::vector<int64_t>{-kMost, 0}));
  EXPECT_EQ(arange<float>(0, 1, 0.25F).to_vector(), (Floats{0, 0.25F, 0.5F, 0.75F}));
  EXPECT_THROW((void)arange<float>(0, INFINITY), TypeError);
  EXPECT_THROW((void)arange<double>(0, NAN), TypeError);
  EXPECT_EQ(linspace<float>(0, 1, 5).to_vector(), (Floats{0, 0.25F, 0.5F, 0.75F, 1}));
  EXPECT_EQ(linspace<double>(0, 0.3, 4).to_vector().back(), 0.3);
  EXPECT_EQ(linspace<float>(2, 3, 1).to_vector(), (Floats{2}));
  EXPECT_EQ(linspace<half>(2, 3, 0).numel(), 0);
  EXPECT_THROW((void)linspace<float>(0, 1, -1), ShapeError);
  EXPECT_THROW((void)linspace<float>(0, INFINITY, 3), TypeError);
  EXPECT_THROW((void)eye<float>(-1), ShapeError);
  EXPECT_THROW((void)zeros<float>({-1}), ShapeError);
  EXPECT_THROW((void)empty<double>({INT64_MAX / 4}), Error);
  EXPECT_HAS(error_of<ShapeError>([] { (void)from_data<float>({1, 2, 3}, {2, 2}); }), "got 3");
}

// --- elements

TEST(Tensor, ElementAccess) {
  const auto x = arange<int32_t>(6).view({2, 3});
  EXPECT_EQ(x(1, 2), 5);
  EXPECT_EQ(x(-1, -3), 3);
  EXPECT_EQ(x.t()(2, 0), 2);
  x(0, 1) = 9;
  EXPECT_EQ(x.at({0, 1}), 9);
  EXPECT_EQ(scalar<int32_t>(4)(), 4);
  EXPECT_EQ(x.select(0, 1).narrow(0, 1, 1).item(), 4);
  EXPECT_HAS(error_of<IndexError>([&] { (void)x(2, 0); }), "got 2");
  EXPECT_HAS(error_of<IndexError>([&] { (void)x(0, -4); }), "(2, 3)");
  EXPECT_HAS(error_of<IndexError>([&] { (void)x(0); }), "2 indices");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)x.item(); }),
             "[item] expected one element, got shape (2, 3)");
  EXPECT_HAS(error_of<ShapeError>([] { (void)Tensor<float>().item(); }), "[item]");
  EXPECT_HAS(error_of<ShapeError>([] { (void)Tensor<float>()(); }), "undefined");
  EXPECT_HAS(error_of<ShapeError>([] { (void)zeros<float>({0}).item(); }), "(0)");
}

TEST(Tensor, HandlesShareAndClonesDoNot) {
  const auto x = zeros<float>({4});
  const Tensor<float> handle = x;
  const auto copy = x.clone();
  handle.fill_(2);
  EXPECT_EQ(x(0), 2);
  EXPECT_EQ(copy(0), 0);
  EXPECT_EQ(x.contiguous().data(), x.data());
  EXPECT_EQ(x.to<float>().data(), x.data());
  EXPECT_EQ(x.to(kCpu).data(), x.data());
  const auto strided = arange<int32_t>(6).view({2, 3}).t();
  EXPECT_EQ(strided.clone().strides(), strided.strides());  // keeps the order of dimensions
  EXPECT_EQ(strided.contiguous().to_vector(), (Ints{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(strided.reshape({6}).to_vector(), (Ints{0, 3, 1, 4, 2, 5}));
  EXPECT_HAS(error_of<ShapeError>([&] { (void)strided.view({6}); }), "reshape()");
  EXPECT_HAS(error_of<TypeError>([&] { (void)x.any().as<double>(); }),
             "expected dtype float64, got float32");
}

// --- overlapping memory

TEST(Tensor, G01CopyBetweenOverlappingSlices) {
  for (int run = 0; run < 20; ++run) {
    const auto a = arange<int32_t>(1, 11);
    a.narrow(0, 1, 9).copy_(a.narrow(0, 0, 9));
    EXPECT_EQ(a.to_vector(), (Ints{1, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    const auto b = arange<int32_t>(1, 11);
    b.narrow(0, 0, 9).copy_(b.narrow(0, 1, 9));
    EXPECT_EQ(b.to_vector(), (Ints{2, 3, 4, 5, 6, 7, 8, 9, 10, 10}));
    const auto c = arange<int32_t>(24).view({2, 4, 3});
    c.narrow(1, 1, 3).copy_(c.narrow(1, 0, 3));
    EXPECT_EQ(c.to_vector(), (Ints{0,  1,  2,  0,  1,  2,  3,  4,  5,  6,  7,  8,
                                   12, 13, 14, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
    const auto large = arange<int32_t>(200000);  // copied by several threads
    large.narrow(0, 1, 199999).copy_(large.narrow(0, 0, 199999));
    EXPECT_EQ(large(199999), 199998);
    EXPECT_EQ(large(100000), 99999);
  }
  const auto square = arange<int32_t>(4).view({2, 2});
  square.copy_(square.t());
  EXPECT_EQ(square.to_vector(), (Ints{0, 2, 1, 3}));
  const auto reversed = arange<int32_t>(5);
  reversed.copy_(reversed.slice(0, {}, {}, -1));
  EXPECT_EQ(reversed.to_vector(), (Ints{4, 3, 2, 1, 0}));
  reversed.copy_(reversed);
  EXPECT_EQ(reversed.to_vector(), (Ints{4, 3, 2, 1, 0}));
}

TEST(Tensor, G02AsStridedStaysInsideItsStorage) {
  const auto base = from_data<int32_t>({1, 2, 3});
  const auto row = [&](const Shape& sizes, const Strides& strides, int64_t offset) {
    return base.as_strided(sizes, strides, offset).to_vector();
  };
  EXPECT_EQ(row({2, 2}, {1, 1}, 0), (Ints{1, 2, 2, 3}));
  EXPECT_EQ(row({2}, {-1}, 1), (Ints{2, 1}));
  EXPECT_EQ(row({3}, {0}, 2), (Ints{3, 3, 3}));
  const auto empty = base.as_strided({0, 5}, {1, 1}, 3);
  EXPECT_EQ(empty.shape(), (Shape{0, 5}));
  EXPECT_EQ(empty.to_vector(), Ints{});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  struct Refused {
    Shape sizes;
    Strides strides;
    int64_t offset;
  };
  for (const Refused& r :
       {Refused{{2, 2}, {2, 1}, 0}, Refused{{1}, {}, 0}, Refused{{1, 0}, {}, 1},
        Refused{{4096}, {0}, kMost}, Refused{{2}, {kMost}, 1}, Refused{{2}, {-2}, 1},
        Refused{{1}, {1}, -1}, Refused{{1}, {1}, 3}, Refused{{-1}, {1}, 0}, Refused{{0}, {1}, 4},
        Refused{{2}, {std::numeric_limits<int64_t>::min()}, 0}}) {
    const std::string error =
        error_of<ShapeError>([&] { (void)base.as_strided(r.sizes, r.strides, r.offset); });
    EXPECT_HAS(error, "[as_strided]");
    EXPECT_HAS(error, concat("sizes ", r.sizes, " strides ", r.strides, " offset ", r.offset));
    EXPECT_HAS(error, "storage of 3 elements");
  }
  EXPECT_HAS(error_of<ShapeError>([] { (void)scalar<float>(1).as_strided({1}, {}, 0); }),
             "storage of 1 elements");
  EXPECT_EQ(base.to_vector(), (Ints{1, 2, 3}));
  // The offset of the view itself is the default; other views reach the whole storage.
  EXPECT_EQ(base.narrow(0, 1, 2).as_strided({2}, {1}).to_vector(), (Ints{2, 3}));
  EXPECT_EQ(base.narrow(0, 1, 1).as_strided({3}, {1}, 0).to_vector(), (Ints{1, 2, 3}));
}

TEST(Tensor, NarrowWrapsANegativeStartOnce) {
  const auto x = arange<int32_t>(5);
  EXPECT_EQ(x.narrow(0, -2, 2).to_vector(), (Ints{3, 4}));
  EXPECT_EQ(x.narrow(0, -5, 5).numel(), 5);
  EXPECT_EQ(x.narrow(0, 5, 0).numel(), 0);
  EXPECT_HAS(error_of<IndexError>([&] { (void)x.narrow(0, -6, 1); }), "start -6");
  EXPECT_HAS(error_of<IndexError>([&] { (void)x.narrow(0, -2, 3); }), "length 3");
}

TEST(Tensor, WritesToSelfOverlappingViewsThrowAndChangeNothing) {
  const auto x = arange<float>(4);
  const std::vector<Tensor<float>> overlapping = {x.narrow(0, 0, 1).expand({3}), x.unfold(0, 2, 1),
                                                  x.as_strided({3}, {0}, 1)};
  for (const auto& view : overlapping) {
    EXPECT_HAS(error_of<ShapeError>([&] { view.fill_(7); }), "[fill_]");
    EXPECT_HAS(error_of<ShapeError>([&] { view.copy_(zeros<float>(view.shape())); }), "[copy_]");
    EXPECT_HAS(error_of<ShapeError>([&] { view.any().accumulate_(view); }), "overlap");
  }
  EXPECT_EQ(x.to_vector(), (Floats{0, 1, 2, 3}));
  EXPECT_EQ(x.any().storage().version(), arange<float>(4).any().storage().version());
  x.unfold(0, 2, 2).fill_(1);  // does not overlap
  EXPECT_EQ(x.to_vector(), (Floats{1, 1, 1, 1}));
}

TEST(Tensor, CopyErrorsChangeNothing) {
  const auto x = arange<float>(4).view({2, 2});
  EXPECT_HAS(error_of<ShapeError>([&] { x.copy_(zeros<float>({3, 2})); }), "[copy_]");
  EXPECT_HAS(error_of<ShapeError>([&] { x.copy_(zeros<float>({1, 2, 2})); }), "(1, 2, 2)");
  EXPECT_HAS(error_of<ShapeError>([&] { x.copy_(Tensor<float>()); }), "undefined");
  EXPECT_HAS(error_of<ShapeError>([&] { Tensor<float>().copy_(x); }), "undefined");
  EXPECT_EQ(x.to_vector(), (Floats{0, 1, 2, 3}));
  x.copy_(from_data<int32_t>({5, 6}));  // broadcast and converted
  EXPECT_EQ(x.to_vector(), (Floats{5, 6, 5, 6}));
}

TEST(Tensor, AccumulateAdds) {
  const auto x = arange<float>(3);
  x.any().accumulate_(from_data<double>({0.5, 0.5, 0.5}));
  EXPECT_EQ(x.to_vector(), (Floats{0.5F, 1.5F, 2.5F}));
  x.any().accumulate_(x.slice(0, {}, {}, -1));
  EXPECT_EQ(x.to_vector(), (Floats{3, 3, 3}));
  EXPECT_HAS(error_of<ShapeError>([&] { x.any().accumulate_(ones<float>({1})); }), "(3)");
}

// --- memory

TEST(Tensor, BorrowedMemoryIsReleasedOnce) {
  int released = 0;
  float data[6] = {0, 1, 2, 3, 4, 5};
  {
    Tensor<float> view;
    {
      const auto x = from_blob<float>(data, {2, 3}, [&](void* p) {
        EXPECT_EQ(p, data);
        ++released;
      });
      x(0, 0) = 9;
      view = x.select(1, 2);
    }
    EXPECT_EQ(released, 0);
    EXPECT_EQ(view.to_vector(), (Floats{2, 5}));
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(data[0], 9);
  EXPECT_EQ(from_blob<float>(data, {2}).to_vector(), (Floats{9, 1}));  // nobody releases
  EXPECT_THROW((void)from_blob<float>(nullptr, {2}), TypeError);
  EXPECT_NO_THROW((void)from_blob<float>(nullptr, {0}));
}

TEST(Tensor, AllocationsAreAligned) {
  for (const int64_t n : {1, 3, 15, 16, 17, 1000, 100003, 3000000}) {
    const auto x = empty<uint8_t>({n});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(x.data()) % 64, 0U) << n;
  }
}

TEST(Tensor, SecondIterationAsksTheSystemForNothing) {
  auto iteration = [] {
    for (const int64_t n : {10, 1000, 70000, 3000000}) {
      const auto x = zeros<float>({n});
      const auto y = x.clone();
      (void)y.to<double>();
    }
  };
  iteration();
  const AllocatorStats before = cpu_allocator().stats();
  iteration();
  const AllocatorStats after = cpu_allocator().stats();
  EXPECT_EQ(after.allocations - before.allocations, 12);
#ifndef __SANITIZE_ADDRESS__
  EXPECT_EQ(after.system_requests, before.system_requests);
#endif
  EXPECT_EQ(after.bytes_in_use, before.bytes_in_use);
  cpu_allocator().empty_cache();
  EXPECT_EQ(cpu_allocator().stats().bytes_cached, 0);
}

TEST(Tensor, HiddenCopiesAreCounted) {
  reset_copy_stats();
  const auto x = zeros<float>({2, 3, 4, 4});
  (void)materialize(x);
  (void)x.contiguous(MemoryFormat::channels_last);  // asked for
  (void)x.t().clone();
  EXPECT_EQ(copy_stats().hidden_copies, 0);
  (void)materialize(x.t());
  EXPECT_EQ(copy_stats().hidden_copies, 1);
  EXPECT_EQ(copy_stats().layout_conversions, 0);
  (void)materialize(x, MemoryFormat::channels_last);
  EXPECT_EQ(copy_stats().hidden_copies, 2);
  EXPECT_EQ(copy_stats().layout_conversions, 1);
  reset_copy_stats();
  EXPECT_EQ(copy_stats().hidden_copies, 0);
}

TEST(Tensor, SharingIsSeenByAddress) {
  float data[8] = {};
  const auto a = from_blob<float>(data, {6});
  const auto b = from_blob<float>(data + 4, {4});
  EXPECT_TRUE(may_share_memory(a, b));  // two storages over one range
  EXPECT_FALSE(may_share_memory(a.narrow(0, 0, 4), b));
  EXPECT_FALSE(may_share_memory(a, b.narrow(0, 0, 0)));
  EXPECT_FALSE(may_share_memory(a, AnyTensor()));
}

TEST(Tensor, OtherDevicesAreRefusedByName) {
  const Device gpu{DeviceType::cuda, 0};
  if (cuda::device_count() > 0) GTEST_SKIP() << "this build has one";
  EXPECT_HAS(error_of<DeviceError>([&] { (void)zeros<float>({2}, {.device = gpu}); }), "cuda");
  EXPECT_HAS(error_of<DeviceError>([&] { (void)ones<float>({2}).to(gpu); }), "cuda");
}

TEST(StateDict, KeepsOrderAndRefusesRepeats) {
  StateDict dict;
  const auto w = ones<float>({2});
  dict.add("b", w);
  dict.add("a", zeros<int64_t>({1}));
  EXPECT_EQ(dict.size(), 2U);
  EXPECT_EQ(dict.begin()->first, "b");
  ASSERT_NE(dict.find("b"), nullptr);
  EXPECT_EQ(dict.find("b")->data(), w.data());  // a handle
  EXPECT_EQ(dict.find("c"), nullptr);
  EXPECT_HAS(error_of<Error>([&] { dict.add("a", w); }), "\"a\"");
  EXPECT_EQ(dict.size(), 2U);
}

}  // namespace
}  // namespace gable
