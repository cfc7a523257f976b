// SPDX-License-Identifier: Apache-2.0
// Gradients through views: every view operator against central differences, overlapping views,
// memory order, G10.
#include <gtest/gtest.h>

#include "gable/autograd/apply.hpp"
#include "gable/autograd/gradcheck.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/ops/elementwise.hpp"
#include "gable/ops/view.hpp"
#include "gable/tensor/random.hpp"

namespace gable {
namespace {

using V = Variable<double>;
using Inputs = std::vector<V>;

std::vector<double> grad_of(const V& x) { return x.grad().to_vector(); }

// d sum(y * w) / dx, which gives every element of y its own upstream gradient.
void backward_with(const V& y, std::initializer_list<double> w) {
  y.backward(from_data<double>(w, y.shape()));
}

TEST(AutogradViews, G10StridedSliceThatSelectsOneRow) {
  const V z(zeros<double>({2, 3}), true);
  const auto wa = from_data<double>({1, 2, 3}, {1, 3});
  const auto wb = from_data<double>({100, 101, 102}, {1, 3});
  (z.slice(0, 0, {}, 2) * V(wa)).backward(ones<double>({1, 3}));
  (z.slice(0, 1, {}, 2) * V(wb)).backward(ones<double>({1, 3}));
  EXPECT_EQ(grad_of(z), (std::vector<double>{1, 2, 3, 100, 101, 102}));

  const V z5(zeros<double>({5}), true);
  (z5.slice(0, 1, {}, 4)[0] * 7).backward();
  EXPECT_EQ(grad_of(z5), (std::vector<double>{0, 7, 0, 0, 0}));
  z5.zero_grad();
  backward_with(z5.slice(0, 0, {}, 2), {1, 2, 3});
  EXPECT_EQ(grad_of(z5), (std::vector<double>{1, 0, 2, 0, 3}));
}

struct ViewCase {
  const char* name;
  Shape shape;
  std::function<V(const V&)> view;
};

const std::vector<ViewCase> kViews = {
    {"narrow", {3, 5}, [](const V& x) { return narrow(x, 1, 1, 3); }},
    {"narrow from the end", {3, 5}, [](const V& x) { return narrow(x, 1, -2, 2); }},
    {"narrow to nothing", {3, 5}, [](const V& x) { return narrow(x, 1, 2, 0); }},
    {"select", {3, 5}, [](const V& x) { return select(x, 0, -1); }},
    {"select all", {3}, [](const V& x) { return x[1]; }},
    {"slice", {3, 7}, [](const V& x) { return slice(x, 1, 1, 6, 2); }},
    {"slice backwards", {3, 7}, [](const V& x) { return slice(x, 1, {}, {}, -3); }},
    {"transpose", {2, 3, 4}, [](const V& x) { return transpose(x, 0, 2); }},
    {"t", {2, 3}, [](const V& x) { return x.t(); }},
    {"permute",
     {2, 3, 4},
     [](const V& x) {
       return permute(x, {2, 0, 1});
     }},
    {"permute negative",
     {2, 3, 4},
     [](const V& x) {
       return permute(x, {-1, 0, -2});
     }},
    {"squeeze", {2, 1, 3}, [](const V& x) { return squeeze(x, 1); }},
    {"squeeze of size 2", {2, 1, 3}, [](const V& x) { return squeeze(x, 0); }},
    {"squeeze all", {1, 3, 1}, [](const V& x) { return squeeze(x); }},
    {"unsqueeze", {2, 3}, [](const V& x) { return unsqueeze(x, 1); }},
    {"unsqueeze last", {2, 3}, [](const V& x) { return unsqueeze(x, -1); }},
    {"reshape",
     {2, 6},
     [](const V& x) {
       return reshape(x, {3, -1});
     }},
    {"reshape of a transpose",
     {2, 6},
     [](const V& x) {
       return reshape(x.t(), {4, 3});
     }},
    {"view",
     {2, 6},
     [](const V& x) {
       return view(x.reshape({12}), {4, 3});
     }},
    {"flatten", {2, 3, 4}, [](const V& x) { return flatten(x, 1); }},
    {"expand",
     {1, 3, 1},
     [](const V& x) {
       return expand(x, {2, 3, 4});
     }},
    {"expand with new dimensions",
     {3},
     [](const V& x) {
       return expand(x, {2, 2, -1});
     }},
    {"expand of a scalar",
     {},
     [](const V& x) {
       return expand(x, {2, 2});
     }},
    {"broadcast_to",
     {3, 1},
     [](const V& x) {
       return broadcast_to(x, {3, 5});
     }},
    {"unfold", {7}, [](const V& x) { return unfold(x, 0, 3, 1); }},
    {"unfold inner", {3, 6, 2}, [](const V& x) { return unfold(x, 1, 4, 2); }},
    {"unfold without overlap", {7}, [](const V& x) { return unfold(x, 0, 2, 3); }},
    {"unfold twice", {4, 4}, [](const V& x) { return unfold(unfold(x, 0, 3, 1), 1, 3, 1); }},
    {"diagonal", {3, 4}, [](const V& x) { return diagonal(x); }},
    {"diagonal above", {3, 4, 2}, [](const V& x) { return diagonal(x, 1, 0, 1); }},
    {"diagonal below", {3, 4, 2}, [](const V& x) { return diagonal(x, -1, 2, 1); }},
    {"flip", {3, 4}, [](const V& x) { return flip(x, {0}); }},
    {"flip all", {3, 4}, [](const V& x) { return flip(x, {}); }},
    {"chain",
     {4, 6},
     [](const V& x) {
       return x.t().slice(0, {}, {}, 2).unsqueeze(0).expand({2, 3, 4}).select(2, 1);
     }},
};

TEST(AutogradViews, EveryViewMatchesCentralDifferences) {
  Generator g(7);
  for (const ViewCase& c : kViews) {
    const auto x = rand<double>(c.shape, -1, 1, {}, g);
    std::vector<Tensor<double>> layouts = {x};
    if (x.rank() >= 2) layouts.push_back(x.transpose(0, -1).contiguous().transpose(0, -1));
    if (x.rank() >= 1) {
      Shape twice = x.shape();
      twice.back() *= 2;
      const auto strided = zeros<double>(twice).slice(-1, 1, {}, 2);
      strided.copy_(x);
      layouts.push_back(strided);
    }
    for (const auto& input : layouts) {
      // cubed, so that the gradient reads values through the view
      const auto f = [&](const Inputs& in) {
        const V y = c.view(in[0]);
        return y * y * y;
      };
      const GradcheckResult r = gradcheck(f, {input});
      EXPECT_TRUE(r.ok) << c.name << " " << concat(input.layout()) << ": " << r.message;
    }
  }
}

TEST(AutogradViews, ViewsShareMemory) {
  const V x(arange<double>(12).view({3, 4}), true);
  for (const V& y :
       {x.narrow(0, 1, 2), x.select(1, 2), x.slice(1, 0, {}, 2), x.t(), x.permute({1, 0}),
        x.squeeze(), x.unsqueeze(0), x.view({12}), x.reshape({2, 6}), x.flatten(),
        x.expand({2, 3, 4}), x.unfold(1, 2, 1), x.diagonal(), flip(x, {0})}) {
    EXPECT_TRUE(y.requires_grad());
    EXPECT_TRUE(y.value().any().storage() == x.value().any().storage());
  }
  EXPECT_FALSE(x.detach().t().requires_grad());
  const NoGrad no_grad;
  EXPECT_FALSE(x.t().requires_grad());
}

TEST(AutogradViews, TensorsTakeTheSameFunctions) {
  const auto x = arange<int32_t>(6).view({2, 3});
  EXPECT_EQ(transpose(x, 0, 1).to_vector(), (std::vector<int32_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(flip(x, {1}).to_vector(), (std::vector<int32_t>{2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(expand(x.select(0, 1), {2, 3}).to_vector(), (std::vector<int32_t>{3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(as_strided(x, {2, 2}, {1, 1}, 0).to_vector(), (std::vector<int32_t>{0, 1, 1, 2}));
  const Variable<int32_t> constant(x);
  EXPECT_EQ(constant.t().shape(), (Shape{3, 2}));
  EXPECT_EQ(constant.expand({2, 2, 3}).numel(), 12);
}

TEST(AutogradViews, AsStridedGivesGradientsToWhatItAddressed) {
  const V x(zeros<double>({3}), true);
  backward_with(x.as_strided({2, 2}, {1, 1}, 0), {1, 10, 100, 1000});
  EXPECT_EQ(grad_of(x), (std::vector<double>{1, 110, 1000}));
  x.zero_grad();
  backward_with(x.as_strided({3}, {0}, 2), {1, 2, 4});
  EXPECT_EQ(grad_of(x), (std::vector<double>{0, 0, 7}));
  x.zero_grad();
  backward_with(x.as_strided({2}, {-1}, 1), {1, 2});
  EXPECT_EQ(grad_of(x), (std::vector<double>{2, 1, 0}));
  x.zero_grad();
  x.as_strided({0, 5}, {1, 1}, 3).backward(zeros<double>({0, 5}));
  EXPECT_EQ(grad_of(x), (std::vector<double>{0, 0, 0}));

  // Elements of the storage outside the input get nothing.
  const auto base = zeros<double>({6});
  const V middle(base.slice(0, 1, {}, 2), true);  // elements 1, 3, 5
  backward_with(middle.as_strided({4}, {1}, 2), {1, 2, 4, 8});
  EXPECT_EQ(grad_of(middle), (std::vector<double>{0, 2, 8}));
  const V repeated(base.select(0, 0).expand({3}), true);
  EXPECT_THROW((void)repeated.as_strided({1}, {1}, 0), ShapeError);
}

TEST(AutogradViews, GradientKeepsTheMemoryOrder) {
  const Variable<float> x(rand<float>({2, 3, 4, 4}, 0, 1, {.format = MemoryFormat::channels_last}),
                          true);
  const auto dy = ones<float>({2, 3, 4, 2}, {.format = MemoryFormat::channels_last});
  reset_copy_stats();
  x.narrow(3, 1, 2).backward(dy);
  EXPECT_TRUE(x.grad().is_contiguous(MemoryFormat::channels_last));
  EXPECT_EQ(copy_stats().hidden_copies, 0);
}

TEST(AutogradViews, SmallFloatsAddWindowsInFloat) {
  // Element 0 is in 64 windows; 64 additions of 1.0009765625 in half would round each time.
  const Variable<half> x(zeros<half>({1}), true);
  const half one_ulp = half(1.0009765625F);
  x.as_strided({64}, {0}, 0).backward(full<half>({64}, one_ulp));
  EXPECT_EQ(x.grad().item(), 64.0625F);
}

TEST(AutogradViews, ErrorsNameTheView) {
  const V x(zeros<double>({2, 3}), true);
  auto tag = [](auto&& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.op();
    }
    return "nothing thrown";
  };
  EXPECT_EQ(tag([&] { (void)x.narrow(1, 2, 2); }), "narrow");
  EXPECT_EQ(tag([&] { (void)x.select(2, 0); }), "select");
  EXPECT_EQ(tag([&] { (void)x.permute({0, 0}); }), "permute");
  EXPECT_EQ(tag([&] { (void)x.reshape({4}); }), "reshape");
  EXPECT_EQ(tag([&] { (void)x.expand({3, 3}); }), "expand");
  EXPECT_EQ(tag([&] { (void)narrow(V(), 0, 0, 1); }), "narrow");
}

}  // namespace
}  // namespace gable
