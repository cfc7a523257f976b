// SPDX-License-Identifier: Apache-2.0
// Convolutions: the handed-out cases, sizes, errors, layouts, threads.
#include "gable/ops/conv.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "gable/autograd/apply.hpp"
#include "gable/core/parallel.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/ops/pool.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

using Values = std::vector<float>;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return concat("[", e.op(), "] ", e.message());
  }
  return "nothing thrown";
}

Values repeated(const Values& values, int64_t times) {
  Values out;
  for (int64_t i = 0; i < times; ++i) out.insert(out.end(), values.begin(), values.end());
  return out;
}

// Result and gradients under ones.
struct Results {
  Tensor<float> y;
  Tensor<float> dx;
  Tensor<float> dw;
};
Results run(const Tensor<float>& x, const Tensor<float>& w, const ConvOptions& o) {
  const Variable<float> vx(x, true);
  const Variable<float> vw(w, true);
  const Variable<float> y = conv2d(vx, vw, o);
  y.backward(ones<float>(y.shape()));
  return {y.value(), vx.grad(), vw.grad()};
}

// The same values behind other strides.
Tensor<float> turned(const Tensor<float>& x) {
  const Tensor<float> base(Shape{x.size(3), x.size(2), x.size(1), x.size(0)});
  const Tensor<float> view = base.permute({3, 2, 1, 0});
  view.copy_(x);
  return view;
}

TEST(Conv, G07DepthwiseStride2) {
  const Values y = {4, 6, 6, 6, 9, 9, 6, 9, 9};
  const Values a = {1, 2, 1, 2, 1, 1};
  const Values b = {2, 4, 2, 4, 2, 2};
  Values dx;
  for (const Values& row : {a, b, a, b, a, a}) dx.insert(dx.end(), row.begin(), row.end());
  for (const int64_t channels : {23, 24, 25})
    for (const bool strided : {false, true}) {
      Tensor<float> x = ones<float>({1, channels, 6, 6});
      Tensor<float> w = ones<float>({channels, 1, 3, 3});
      if (strided) x = turned(x), w = turned(w);
      const Results r = run(x, w, {.stride = 2, .padding = 1, .groups = channels});
      EXPECT_EQ(r.y.to_vector(), repeated(y, channels));
      EXPECT_EQ(r.dw.to_vector(), repeated(y, channels));
      EXPECT_EQ(r.dx.to_vector(), repeated(dx, channels));
    }
}

TEST(Conv, G08PaddingLargerThanTheKernel) {
  for (const bool strided : {false, true}) {
    const auto at = [&](const Tensor<float>& x) { return strided ? turned(x) : x; };
    const Results one =
        run(at(full<float>({1, 1, 1, 1}, 2)), at(full<float>({1, 1, 1, 1}, 3)), {.padding = 2});
    Values want(25, 0.0F);
    want[12] = 6;
    EXPECT_EQ(one.y.shape(), (Shape{1, 1, 5, 5}));
    EXPECT_EQ(one.y.to_vector(), want);
    EXPECT_EQ(one.dx.item(), 3.0F);
    EXPECT_EQ(one.dw.item(), 2.0F);

    const Results r =
        run(at(ones<float>({1, 1, 2, 2})), at(ones<float>({1, 1, 3, 3})), {.padding = 4});
    EXPECT_EQ(r.y.shape(), (Shape{1, 1, 8, 8}));
    float total = 0;
    for (const float v : r.y.to_vector()) total += v;
    EXPECT_EQ(total, 36.0F);
    EXPECT_EQ(r.y.narrow(2, 2, 4).narrow(3, 2, 4).to_vector(),
              (Values{1, 2, 2, 1, 2, 4, 4, 2, 2, 4, 4, 2, 1, 2, 2, 1}));
    EXPECT_EQ(r.dx.to_vector(), Values(4, 9.0F));
    EXPECT_EQ(r.dw.to_vector(), Values(9, 4.0F));
  }
}

TEST(Conv, G08Sizes) {
  struct Case {
    int64_t size, kernel, dilation, stride, padding, want;
  };
  for (const auto& c : {Case{8, 3, 2, 1, 0, 4}, Case{8, 1, 3, 1, 0, 8}, Case{7, 3, 1, 2, 1, 4}}) {
    const auto y =
        conv2d(ones<float>({1, 1, c.size, c.size}), ones<float>({1, 1, c.kernel, c.kernel}),
               {.stride = c.stride, .padding = c.padding, .dilation = c.dilation});
    EXPECT_EQ(y.shape(), (Shape{1, 1, c.want, c.want}));
  }
  EXPECT_THROW(conv2d(ones<float>({1, 1, 1, 1}), ones<float>({1, 1, 3, 3})), ShapeError);
}

TEST(Conv, G08DilationInOneDimension) {
  const auto x = from_data<float>({1, 2, 3, 4, 5}, {1, 1, 1, 5});
  const auto w = from_data<float>({1, 10, 100}, {1, 1, 1, 3});
  EXPECT_EQ(conv2d(x, w, {.dilation = {1, 2}}).to_vector(), Values{531});
}

TEST(Conv, G08Same) {
  const auto y = conv2d(ones<float>({1, 3, 28, 31}), ones<float>({8, 3, 3, 5}),
                        {.padding = Padding::same, .dilation = {2, 3}});
  EXPECT_EQ(y.shape(), (Shape{1, 8, 28, 31}));
  const auto small = conv2d(ones<float>({1, 1, 8, 8}), ones<float>({1, 1, 3, 3}),
                            {.padding = Padding::same, .dilation = 2});
  EXPECT_EQ(small.shape(), (Shape{1, 1, 8, 8}));
  EXPECT_EQ(small(0, 0, 0, 0), 4.0F);  // two zeros on each side
}

TEST(Conv, ChannelsLastIsNotCopied) {
  Generator g(1);
  const TensorOptions last{.format = MemoryFormat::channels_last};
  const Variable<float> x(rand<float>({2, 8, 6, 6}, -1, 1, last, g), true);
  const Variable<float> w(rand<float>({4, 8, 3, 3}, -1, 1, last, g), true);
  reset_copy_stats();
  const auto y = conv2d(x, w, {.padding = 1});
  EXPECT_TRUE(y.value().is_contiguous(MemoryFormat::channels_last));
  y.backward(rand<float>(y.shape(), -1, 1, last, g));
  EXPECT_TRUE(x.grad().is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE(w.grad().is_contiguous(MemoryFormat::channels_last));
  // slices of channels-last images keep their channels adjacent
  const Tensor<float> part = x.value().narrow(1, 2, 4).narrow(2, 1, 4).slice(3, 0, {}, 2);
  conv2d(part, w.value().narrow(1, 0, 4).clone());
  EXPECT_EQ(copy_stats().hidden_copies, 0);

  conv2d(x.value().contiguous(), w.value());
  EXPECT_EQ(copy_stats().layout_conversions, 1);
}

TEST(Conv, SlicedImagesGiveTheSameValues) {
  Generator g(2);
  const TensorOptions last{.format = MemoryFormat::channels_last};
  const auto whole = rand<float>({3, 9, 9, 8}, -1, 1, last, g);
  const auto part = whole.narrow(0, 1, 2).narrow(1, 2, 6).narrow(2, 1, 7).slice(3, 1, {}, 2);
  for (const ConvOptions& o : {ConvOptions{.padding = 1}, ConvOptions{.groups = 2}}) {
    const auto w = rand<float>({12, 6 / o.groups, 3, 3}, -1, 1, {}, g);
    EXPECT_EQ(conv2d(part, w, o).to_vector(), conv2d(part.contiguous(), w, o).to_vector());
  }
  const auto depth = rand<float>({6, 1, 3, 3}, -1, 1, {}, g);
  EXPECT_EQ(conv2d(part, depth, {.groups = 6}).to_vector(),
            conv2d(part.contiguous(), depth, {.groups = 6}).to_vector());
  const auto point = rand<float>({5, 6, 1, 1}, -1, 1, {}, g);
  EXPECT_EQ(conv2d(part, point).to_vector(), conv2d(part.contiguous(), point).to_vector());
}

TEST(Conv, SlicedGradientsGiveTheSameValues) {
  Generator g(4);
  const auto x = rand<float>({2, 4, 6, 6}, -1, 1, {}, g);
  const auto w = rand<float>({4, 4, 3, 3}, -1, 1, {}, g);
  const auto dy = rand<float>({2, 8, 6, 6}, -1, 1, {.format = MemoryFormat::channels_last}, g);
  const Tensor<float> part = dy.narrow(1, 3, 4);
  std::vector<Values> results;
  for (const Tensor<float>& d : {part, part.contiguous()}) {
    const Variable<float> vx(x, true);
    const Variable<float> vw(w, true);
    conv2d(vx, vw, {.padding = 1}).backward(d);
    results.push_back(vx.grad().to_vector());
    results.push_back(vw.grad().to_vector());
  }
  EXPECT_EQ(results[0], results[2]);
  EXPECT_EQ(results[1], results[3]);
}

TEST(Conv, TransposeIsTheAdjoint) {
  // <conv(x), y> == <x, conv_transpose(y)>
  Generator g(5);
  const auto x = rand<double>({2, 3, 8, 7}, -1, 1, {}, g);
  const auto w = rand<double>({4, 3, 3, 3}, -1, 1, {}, g);
  const auto cx = conv2d(x, w, {.stride = 2, .padding = 1});
  const auto y = rand<double>(cx.shape(), -1, 1, {}, g);
  const auto ty = conv_transpose2d(y, w, {.stride = 2, .padding = 1, .output_padding = {1, 0}});
  ASSERT_EQ(ty.shape(), x.shape());
  double left = 0;
  double right = 0;
  const auto a = cx.to_vector(), b = y.to_vector(), c = x.to_vector(), d = ty.to_vector();
  for (size_t i = 0; i < a.size(); ++i) left += a[i] * b[i];
  for (size_t i = 0; i < c.size(); ++i) right += c[i] * d[i];
  EXPECT_NEAR(left, right, 1e-10);
}

TEST(Conv, EmptyShapes) {
  const Variable<float> x(zeros<float>({0, 3, 5, 5}), true);
  const Variable<float> w(ones<float>({2, 3, 3, 3}), true);
  const auto y = conv2d(x, w);
  EXPECT_EQ(y.shape(), (Shape{0, 2, 3, 3}));
  y.backward(zeros<float>({0, 2, 3, 3}));
  EXPECT_EQ(w.grad().to_vector(), Values(54, 0.0F));
  const auto none =
      conv2d(zeros<float>({1, 0, 3, 3}), zeros<float>({2, 0, 1, 1}), from_data<float>({1, 2}));
  EXPECT_EQ(none.to_vector(), (Values{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2}));
}

TEST(Conv, SameBitsForAnyThreadCount) {
  Generator g(3);
  const int before = num_threads();
  const auto x = rand<float>({9, 24, 11, 13}, -1, 1, {}, g);
  const auto w = rand<float>({40, 24, 3, 3}, -1, 1, {}, g);
  const auto point = rand<float>({40, 24, 1, 1}, -1, 1, {}, g);
  const auto depth = rand<float>({24, 1, 3, 3}, -1, 1, {}, g);
  std::vector<std::vector<Values>> all;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<Values> results;
    const std::vector<std::pair<Tensor<float>, ConvOptions>> calls = {
        {w, {.padding = 1}},
        {w, {.stride = 2, .padding = 1}},
        {point, {}},
        {point, {.stride = 2}},
        {depth, {.padding = 1, .groups = 24}}};
    for (const auto& [weight, options] : calls) {
      const Results r = run(x, weight, options);
      for (const auto& t : {r.y, r.dx, r.dw}) results.push_back(t.to_vector());
    }
    all.push_back(results);
  }
  set_num_threads(before);
  for (const auto& results : all) EXPECT_EQ(results, all[0]);
}

// Largest difference of two tensors relative to the largest value.
double distance(const Tensor<float>& a, const Tensor<double>& b) {
  const Values x = a.to_vector();
  const std::vector<double> y = b.to_vector();
  double most = 1e-30;
  double difference = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    most = std::max(most, std::abs(y[i]));
    difference = std::max(difference, std::abs(static_cast<double>(x[i]) - y[i]));
  }
  return difference / most;
}

// The float kernels are others than those of double, which gradcheck sees.
TEST(Conv, FloatGradientsMatchDouble) {
  struct Case {
    int64_t images, in, out, height, width, kernel;
    ConvOptions options;
  };
  const std::vector<Case> cases = {
      {2, 8, 6, 5, 7, 3, {.padding = 1}},
      {3, 19, 37, 9, 6, 3, {.padding = 1}},
      {2, 24, 17, 9, 8, 3, {.stride = 2, .padding = 1}},
      {1, 16, 16, 7, 7, 1, {.stride = 2}},
      {2, 16, 33, 6, 6, 1, {}},
      {2, 12, 12, 7, 8, 2, {.stride = 3}},
      {1, 9, 7, 11, 10, 3, {.padding = {3, 0, 1, 5}, .dilation = {2, 3}}},
      {1, 8, 8, 2, 3, 3, {.padding = 4}},
      {1, 10, 10, 9, 9, 3, {.stride = {2, 3}, .padding = 2, .dilation = {3, 2}}},
      {2, 48, 72, 5, 4, 3, {.padding = 1, .groups = 3}},
      {2, 14, 14, 5, 4, 3, {.padding = 1, .groups = 2}},
      {1, 400, 150, 3, 3, 3, {.padding = 1}},   // channels cut for the cache
      {1, 20, 300, 20, 30, 3, {.padding = 1}},  // pixels and rows cut
      {70, 8, 8, 5, 5, 5, {.padding = 2}},
  };
  Generator g(6);
  for (const Case& c : cases) {
    const auto x = rand<float>({c.images, c.in, c.height, c.width}, -1, 1, {}, g);
    const auto w = rand<float>({c.out, c.in / c.options.groups, c.kernel, c.kernel}, -1, 1, {}, g);
    const auto b = rand<float>({c.out}, -1, 1, {}, g);
    const Variable<float> fx(x, true), fw(w, true), fb(b, true);
    const Variable<double> dx(x.to<double>(), true), dw(w.to<double>(), true),
        db(b.to<double>(), true);
    const auto fy = conv2d(fx, fw, fb, c.options);
    const auto dy = conv2d(dx, dw, db, c.options);
    const auto up = rand<float>(fy.shape(), -1, 1, {}, g);
    fy.backward(up);
    dy.backward(up.to<double>());
    const std::string what = concat(x.shape(), w.shape());
    EXPECT_LT(distance(fy.value(), dy.value()), 3e-6) << what;
    EXPECT_LT(distance(fx.grad(), dx.grad()), 3e-6) << what;
    EXPECT_LT(distance(fw.grad(), dw.grad()), 3e-6) << what;
    EXPECT_LT(distance(fb.grad(), db.grad()), 3e-6) << what;
  }
}

TEST(Conv, Errors) {
  const auto x = zeros<float>({1, 4, 5, 5});
  const auto w = zeros<float>({6, 4, 3, 3});
  EXPECT_EQ(message_of([&] {
              conv2d(x, zeros<float>({6, 3, 3, 3}));
            }),
            "[conv2d] expected an input of 3 channels for a weight of shape (6, 3, 3, 3) and 1 "
            "groups, got (1, 4, 5, 5)");
  EXPECT_EQ(message_of([&] {
              conv2d(zeros<float>({4, 5, 5}), w);
            }),
            "[conv2d] expected an input of shape (N, C, H, W), got (4, 5, 5)");
  EXPECT_EQ(message_of([&] { conv2d(x, w, zeros<float>({5})); }),
            "[conv2d] expected a bias of shape (6), got (5)");
  EXPECT_EQ(message_of([&] { conv2d(x, w, {.stride = 0}); }),
            "[conv2d] expected strides of at least 1, got (0, 0)");
  EXPECT_EQ(message_of([&] {
              conv2d(x, w, {.dilation = {1, 0}});
            }),
            "[conv2d] expected dilations of at least 1, got (1, 0)");
  EXPECT_EQ(message_of([&] {
              conv2d(x, w, {.padding = {1, -2}});
            }),
            "[conv2d] expected padding of at least 0, got top 1, bottom 1, left -2, right -2");
  for (const int64_t huge : {INT64_MAX, int64_t{1} << 31}) {
    EXPECT_THROW((void)conv2d(x, w, {.padding = huge}), ShapeError);
    EXPECT_THROW((void)conv2d(x, w, {.dilation = huge}), ShapeError);
    EXPECT_THROW((void)conv_transpose2d(zeros<float>({1, 6, 2, 2}), w, {.stride = huge}),
                 ShapeError);
    EXPECT_THROW((void)max_pool2d(x, huge), ShapeError);
    EXPECT_THROW((void)max_pool2d(x, 2, {.dilation = huge}), ShapeError);
    EXPECT_THROW((void)avg_pool2d(x, {1, huge}, {.padding = {0, huge / 2}}), ShapeError);
  }
  EXPECT_EQ(message_of([&] { conv2d(x, w, {.groups = 0}); }),
            "[conv2d] expected at least 1 group, got 0");
  EXPECT_EQ(message_of([&] {
              conv2d(x, zeros<float>({5, 2, 1, 1}), {.groups = 2});
            }),
            "[conv2d] expected output channels in 2 equal groups, got a weight of shape (5, 2, 1, "
            "1)");
  EXPECT_EQ(message_of([&] { conv2d(x, w, {.stride = 2, .padding = Padding::same}); }),
            "[conv2d] expected stride 1 with Padding::same, got (2, 2)");
  EXPECT_EQ(message_of([&] {
              conv2d(zeros<float>({1, 4, 2, 5}), w);
            }),
            "[conv2d] expected a padded image of at least (3, 3) for a weight of shape (6, 4, 3, "
            "3), got (2, 5) from an input of shape (1, 4, 2, 5)");
  EXPECT_EQ(message_of([&] { conv1d(x, w); }),
            "[conv1d] expected an input of shape (N, C, L) and a weight of shape (O, C / groups, "
            "K), got (1, 4, 5, 5) and (6, 4, 3, 3)");
  EXPECT_EQ(
      message_of([&] { conv_transpose2d(x, w); }),
      "[conv_transpose2d] expected an input of 6 channels for a weight of shape (6, 4, 3, 3), "
      "got (1, 4, 5, 5)");
  EXPECT_EQ(
      message_of([&] {
        conv_transpose2d(zeros<float>({1, 6, 2, 2}), w, {.stride = 2, .output_padding = 2});
      }),
      "[conv_transpose2d] expected output padding below stride (2, 2) or dilation (1, 1), got "
      "(2, 2)");
}

TEST(Conv, Cost) {
  // 1000 -> 1000 channels, kernel 3, length 512, with bias adds
  ConvGeometry g;
  g.images = 1;
  g.in_channels = g.out_channels = 1000;
  g.in = g.out = {1, 512};
  g.kernel = {1, 3};
  EXPECT_EQ(g.flops(), 3072000000);
}

}  // namespace
}  // namespace gable
