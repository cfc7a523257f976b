// SPDX-License-Identifier: Apache-2.0
// amp::autocast on every device: the policy, its scopes, and the cache of casts.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>
#include <thread>

#include "cases/op_case.hpp"
#include "errors.hpp"
#include "gable/amp/autocast.hpp"
#include "gable/autograd/checkpoint.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/models/mlp.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/conv.hpp"
#include "gable/ops/loss.hpp"
#include "gable/ops/matmul.hpp"
#include "gable/ops/reduce.hpp"
#include "gable/ops/softmax.hpp"
#include "gable/optim/sgd.hpp"

namespace gable::amp {
namespace {

using V = Variable<float>;
using Floats = std::vector<float>;
using SmallFloats = TypeList<bfloat16, half>;

// The bits, in logical order.
std::string bits(const AnyTensor& x) {
  if (!x.defined()) return "undefined";
  const AnyTensor dense = x.to(kCpu).contiguous();
  return {static_cast<const char*>(dense.data()), static_cast<size_t>(dense.bytes())};
}

bool is_product(const std::string& name) {
  return name.starts_with("matmul/") || name.starts_with("linear/") || name.starts_with("conv");
}

class Autocast : public testing::TestWithParam<DeviceType> {
 protected:
  void SetUp() override {
    if (GetParam() == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  [[nodiscard]] Device device() const { return {GetParam(), 0}; }
  [[nodiscard]] Tensor<float> values(const Shape& shape, uint64_t seed) const {
    Generator g(seed);
    return randn<float>(shape, 0, 0.5, {}, g).to(device());
  }
  [[nodiscard]] V leaf(const Shape& shape, uint64_t seed) const {
    return {values(shape, seed), true};
  }

  [[nodiscard]] std::vector<AnyTensor> inputs(const cases::OpCase& c, int layout) const {
    std::vector<AnyTensor> out;
    for (const AnyTensor& x : cases::make_inputs(c, DType::float32))
      out.push_back(cases::in_layout(x.to(device()), layout));
    return out;
  }
  // `run` of leaves under autocast<U> equals run of their casts: values, gradients, and on Tensors.
  template <class U, class F>
  void expect_explicit_casts(const std::vector<Shape>& shapes, const F& run) const;
};

template <class U, class F>
void Autocast::expect_explicit_casts(const std::vector<Shape>& shapes, const F& run) const {
  std::vector<V> a;
  std::vector<V> b;
  std::vector<Variable<U>> casts;
  std::vector<Tensor<float>> plain;
  for (size_t i = 0; i < shapes.size(); ++i) {
    plain.push_back(values(shapes[i], i));
    a.emplace_back(plain[i], true);
    b.emplace_back(plain[i], true);
    casts.push_back(cast<U>(b[i]));
  }
  const V want = cast<float>(run(casts));
  V got;
  Tensor<float> got_plain;
  {
    const autocast<U> scope;
    got = run(a);
    got_plain = run(plain);
  }
  EXPECT_EQ(bits(got.value()), bits(want.value()));
  EXPECT_EQ(bits(got_plain), bits(want.value()));
  EXPECT_NE(bits(run(plain)), bits(want.value())) << "float all the time";
  const Tensor<float> dy = values(want.shape(), 9);
  got.backward(dy);
  want.backward(dy);
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_EQ(a[i].grad().dtype(), DType::float32);
    EXPECT_EQ(bits(a[i].grad()), bits(b[i].grad())) << "input " << i;
  }
}

TEST_P(Autocast, ProductsEqualExplicitCasts) {
  SmallFloats::for_each([&]<class U>(TypeTag<U>) {
    const auto product = [](const auto& in) { return matmul(in[0], in[1]); };
    expect_explicit_casts<U>({{5, 7}, {7, 3}}, product);
    expect_explicit_casts<U>({{4, 5, 7}, {4, 7, 3}}, product);
    expect_explicit_casts<U>({{4, 5, 7}, {7, 3}}, product);
    expect_explicit_casts<U>({{4, 5}, {6, 5}}, [](const auto& in) { return linear(in[0], in[1]); });
    expect_explicit_casts<U>({{2, 4, 5}, {6, 5}, {6}},
                             [](const auto& in) { return linear(in[0], in[1], in[2]); });
    expect_explicit_casts<U>({{2, 4, 9}, {6, 2, 3}, {6}}, [](const auto& in) {
      return conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .groups = 2});
    });
    expect_explicit_casts<U>({{2, 4, 9}, {6, 4, 3}},
                             [](const auto& in) { return conv1d(in[0], in[1]); });
    expect_explicit_casts<U>({{2, 4, 8, 9}, {6, 4, 3, 3}, {6}}, [](const auto& in) {
      return conv2d(in[0], in[1], in[2], {.padding = 1});
    });
    expect_explicit_casts<U>({{2, 4, 8, 9}, {4, 1, 3, 3}},
                             [](const auto& in) { return conv2d(in[0], in[1], {.groups = 4}); });
    expect_explicit_casts<U>({{2, 4, 5, 6}, {4, 3, 3, 3}, {3}}, [](const auto& in) {
      return conv_transpose2d(in[0], in[1], in[2], {.stride = 2, .padding = 1});
    });
    expect_explicit_casts<U>({{2, 4, 5, 6}, {4, 3, 3, 3}},
                             [](const auto& in) { return conv_transpose2d(in[0], in[1]); });
  });
}

TEST_P(Autocast, SharedCases) {
  int products = 0;
  for (const cases::OpCase& c : cases::all()) {
    if (c.benchmark || !c.small_floats) continue;
    const bool lowered = is_product(c.name);
    products += lowered ? 1 : 0;
    for (const int layout : {0, 1, 4}) {
      const std::vector<AnyTensor> in = inputs(c, layout);
      std::vector<AnyTensor> explicit_in;
      for (const AnyTensor& x : in) explicit_in.push_back(lowered ? x.to(DType::bfloat16) : x);
      manual_seed(1);
      const AnyTensor want = c.run(explicit_in);
      manual_seed(1);
      const AnyTensor got = [&] {
        const autocast<bfloat16> scope;
        return c.run(in);
      }();
      EXPECT_EQ(got.dtype(), lowered ? DType::float32 : want.dtype()) << c.name;
      EXPECT_EQ(bits(got), bits(lowered ? want.to(DType::float32) : want)) << c.name << layout;
      if (!c.backward) continue;
      Generator generator(7);
      const Tensor<double> dy =
          rand<double>(want.shape(), 0.5, 1.5, {}, generator).to<bfloat16>().to<double>();
      manual_seed(1);
      const std::vector<AnyTensor> want_grads = c.backward(explicit_in, dy);
      manual_seed(1);
      const std::vector<AnyTensor> got_grads = [&] {
        const autocast<bfloat16> scope;
        return c.backward(in, dy);
      }();
      for (size_t i = 0; i < in.size(); ++i)
        EXPECT_EQ(bits(got_grads[i]), bits(want_grads[i])) << c.name << layout << " input " << i;
    }
  }
  EXPECT_GT(products, 20);
}

TEST_P(Autocast, OtherTypesAndOutFormsAreAsEver) {
  const Tensor<float> a = values({5, 7}, 1);
  const Tensor<float> b = values({7, 3}, 2);
  const auto with = [](auto&& f) {
    const autocast<bfloat16> scope;
    return f();
  };
  const auto expect_same = [&](auto&& f) { EXPECT_EQ(bits(with(f)), bits(f())); };
  reset_copy_stats();
  expect_same([&] { return matmul(a.to<double>(), b.to<double>()); });
  expect_same([&] { return matmul(a.to<half>(), b.to<half>()); });
  expect_same([&] { return matmul((a * 9).to<int32_t>(), (b * 9).to<int32_t>()); });
  expect_same([&] { return matmul_out(empty<float>({5, 3}, {.device = device()}), a, b); });
  EXPECT_EQ(copy_stats().autocasts, 0);
  expect_same([&] { return softmax(linear(a.to<double>(), b.t().to<double>()), 1); });
  const autocast<half> scope;
  EXPECT_HAS(error_of<ShapeError>([&] { (void)matmul(a, a); }), "[matmul]");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)matmul(V(a), V()); }), "[matmul] expected defined");
}

TEST_P(Autocast, ScopesNestAndEndWithExceptions) {
  const Tensor<float> a = values({5, 7}, 1);
  const Tensor<float> b = values({7, 3}, 2);
  const auto now = [&] { return bits(matmul(a, b)); };
  const std::string in_float = now();
  const std::string in_bfloat16 = bits(matmul(a.to<bfloat16>(), b.to<bfloat16>()).to<float>());
  const std::string in_half = bits(matmul(a.to<half>(), b.to<half>()).to<float>());
  {
    const autocast<bfloat16> outer;
    EXPECT_EQ(now(), in_bfloat16);
    {
      const autocast<half> inner;
      EXPECT_EQ(now(), in_half);
      {
        const autocast_off off;
        EXPECT_EQ(now(), in_float);
      }
      EXPECT_EQ(now(), in_half);
    }
    try {
      const autocast<half> inner;
      throw std::runtime_error("on the way");
    } catch (const std::runtime_error&) {
      EXPECT_EQ(now(), in_bfloat16);
    }
    std::string other;
    std::thread([&] { other = now(); }).join();
    EXPECT_EQ(other, in_float);
    std::thread([&] {
      const autocast<half> scope;
      other = now();
    }).join();
    EXPECT_EQ(other, in_half);
    EXPECT_EQ(now(), in_bfloat16);
  }
  EXPECT_EQ(now(), in_float);
}

TEST_P(Autocast, LeavesAreCastOnce) {
  const V w = leaf({4, 4}, 1);
  const V x(values({3, 4}, 2));  // a constant: cast by every use
  const auto casts_of = [](auto&& f) {
    reset_copy_stats();
    f();
    return copy_stats().autocasts;
  };
  const auto twice = [&] { linear(linear(x, w), w); };
  EXPECT_EQ(casts_of(twice), 0);
  {
    const autocast<bfloat16> scope;
    EXPECT_EQ(casts_of(twice), 3);  // x, w, the result
    EXPECT_EQ(casts_of(twice), 2);
    {
      const autocast<half> inner;
      EXPECT_EQ(casts_of(twice), 3);
    }
    EXPECT_EQ(casts_of(twice), 2);
    add_(w.value(), ones_like(w.value()));
    EXPECT_EQ(casts_of(twice), 3);
    EXPECT_EQ(casts_of(twice), 2);
    // Another view of the same memory is not mistaken for it.
    const V turned(w.value().t(), true);
    EXPECT_EQ(casts_of([&] { linear(x, turned); }), 2);
    EXPECT_EQ(bits(linear(x, turned).value()), bits(matmul(x, w).value()));
  }
  const autocast<bfloat16> scope;
  EXPECT_EQ(casts_of(twice), 3);
}

TEST_P(Autocast, CachedCastsAndGradients) {
  const Tensor<float> x = values({3, 4}, 2);
  const Tensor<float> dy = values({3, 4}, 3);
  // Two uses in a graph, two backward passes with a graph each, a change, and no_grad first.
  const auto train = [&](bool cached) {
    const V w = leaf({4, 4}, 1);
    std::vector<std::string> out;
    const auto use = [&](const V& in) {
      if (cached) return linear(in, w);
      const autocast_off off;
      return cast<float>(linear(cast<bfloat16>(in), cast<bfloat16>(w)));
    };
    const autocast<bfloat16> scope;
    {
      const NoGrad no_grad;
      out.push_back(bits(use(x).value()));
    }
    for (int step = 0; step < 4; ++step) {
      const V y = use(tanh(use(x)));
      out.push_back(bits(y.value()));
      y.backward(dy);
      out.push_back(bits(w.grad()));
      if (step == 1) add_(w.value(), w.grad());
    }
    return out;
  };
  EXPECT_EQ(train(true), train(false));
}

// Its gradient is a product of floats.
struct SquareOp : OpBase {
  static constexpr const char* name = "square";
  Saved<float> x;
  Tensor<float> forward(const Tensor<float>& in) {
    if (recording()) x.save(in);
    return matmul(in, in);
  }
  Grads<1> backward(const Tensor<float>& dy) {
    const Tensor<float>& v = x.get(name);
    return {matmul(dy, v.t()) + matmul(v.t(), dy)};
  }
};

TEST_P(Autocast, BackwardIsTheSameInsideAndOutside) {
  const Tensor<float> dy = values({4, 4}, 3);
  const auto gradient = [&](bool inside) {
    const V x = leaf({4, 4}, 1);
    V y;
    {
      const autocast<bfloat16> scope;
      y = apply(SquareOp{}, x);
      if (inside) y.backward(dy);
    }
    if (!inside) y.backward(dy);
    return bits(x.grad());
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST_P(Autocast, CheckpointsRunAgainAsBefore) {
  const Tensor<float> dy = values({3, 4}, 3);
  const auto gradients = [&](bool kept, int backward_in) {
    const V w = leaf({4, 4}, 1);
    const V x = leaf({3, 4}, 2);
    const auto block = [w](const V& h) { return linear(tanh(linear(h, w)), w); };
    V y;
    {
      const autocast<bfloat16> scope;
      y = kept ? block(x) : checkpoint(block, x);
      if (backward_in == 0) y.backward(dy);
    }
    if (backward_in == 1) y.backward(dy);
    if (backward_in == 2) {
      const autocast<half> another;
      y.backward(dy);
    }
    return bits(w.grad()) + bits(x.grad());
  };
  const std::string want = gradients(true, 1);
  for (const int backward_in : {0, 1, 2}) EXPECT_EQ(gradients(false, backward_in), want);
}

TEST_P(Autocast, TrainsAnMlp) {
  const auto train = [&](bool lowered) {
    Generator g(5);
    models::MLP<float> model({8, 32, 4}, {}, g);
    model.to(device());
    optim::SGD sgd(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    const Tensor<float> x = values({64, 8}, 1);
    const Tensor<int64_t> labels = argmax(x.narrow(1, 0, 4), 1);
    double loss = 0;
    for (int step = 0; step < 60; ++step) {
      V l;
      if (lowered) {
        const autocast<bfloat16> scope;
        l = cross_entropy(model(x), labels);
      } else {
        l = cross_entropy(model(x), labels);
      }
      l.backward();
      sgd.step();
      sgd.zero_grad();
      loss = l.item();
    }
    return loss;
  };
  const double in_float = train(false);
  const double in_bfloat16 = train(true);
  EXPECT_LT(in_float, 0.4);
  EXPECT_NE(in_bfloat16, in_float);
  EXPECT_NEAR(in_bfloat16, in_float, 0.1 * in_float);
}

std::string device_name(const testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::cuda ? "Cuda" : "Cpu";
}
INSTANTIATE_TEST_SUITE_P(Devices, Autocast, testing::Values(DeviceType::cpu, DeviceType::cuda),
                         device_name);

// A scope around a whole run does not keep every leaf that was ever in it; its end keeps none.
TEST(AutocastCache, LetsShortLivedLeavesGo) {
  int released = 0;
  std::vector<Floats> memory(500, Floats{1, 2, 3, 4});
  {
    const autocast<bfloat16> scope;
    for (Floats& m : memory) {
      const V x(from_blob(m.data(), {2, 2}, [&](void*) { ++released; }), true);
      (void)matmul(x, x);
    }
    EXPECT_GE(released, 400);
  }
  EXPECT_EQ(released, 500);
}

}  // namespace
}  // namespace gable::amp
