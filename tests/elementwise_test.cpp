// SPDX-License-Identifier: Apache-2.0
// Elementwise operators beyond the shared cases: special values, integer types, out and in-place
// forms, overlap, errors; and that every operator on the list has a shared case.
#include "gable/ops/elementwise.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "cases/op_case.hpp"

namespace gable {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// NaN equals NaN here, and the sign of zero counts.
void expect_same(const std::vector<float>& got, const std::vector<float>& want,
                 const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << what << " element " << i << ": " << got[i];
    } else {
      EXPECT_EQ(got[i], want[i]) << what << " element " << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << what << " element " << i;
    }
  }
}

template <class T>
std::vector<float> floats(const Tensor<T>& x) {
  return x.template to<float>().to_vector();
}

template <class E, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "another exception: " << e.what();
    return "";
  }
  ADD_FAILURE() << "no exception";
  return "";
}
#define EXPECT_MESSAGE(E, statement, text)                                 \
  do {                                                                     \
    const std::string message = message_of<E>([&] { (void)(statement); }); \
    EXPECT_NE(message.find(text), std::string::npos) << message;           \
  } while (false)

// --- special values

template <class T>
class SpecialValues : public testing::Test {};
using Floats = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(SpecialValues, Floats);

// Long enough that vectorized loops and their remainders both see each value.
template <class T>
Tensor<T> repeated(const std::vector<float>& values, int64_t times) {
  Tensor<float> one = from_data<float>(values, {1, static_cast<int64_t>(values.size())});
  return one.expand({times, one.size(1)}).clone().to<T>().reshape({-1});
}
std::vector<float> repeat(const std::vector<float>& values, int64_t times) {
  std::vector<float> out;
  for (int64_t i = 0; i < times; ++i) out.insert(out.end(), values.begin(), values.end());
  return out;
}

TYPED_TEST(SpecialValues, Unary) {
  const std::vector<float> in = {kNan, kInf, -kInf, 0.0F, -0.0F, 1.0F, -1.0F};
  for (const int64_t times : {1, 3, 40}) {
    const Tensor<TypeParam> x = repeated<TypeParam>(in, times);
    auto expect = [&](const char* what, const Tensor<TypeParam>& y, std::vector<float> want) {
      expect_same(floats(y), repeat(want, times), what);
    };
    expect("relu", relu(x), {kNan, kInf, 0, 0.0F, -0.0F, 1, 0});
    expect("clamp", clamp(x, -0.5, 0.5), {kNan, 0.5F, -0.5F, 0, -0.0F, 0.5F, -0.5F});
    expect("sign", sign(x), {kNan, 1, -1, 0, 0, 1, -1});
    expect("abs", abs(x), {kNan, kInf, kInf, 0, 0, 1, 1});
    expect("neg", neg(x), {kNan, -kInf, kInf, -0.0F, 0.0F, -1, 1});
    expect("square", square(x), {kNan, kInf, kInf, 0, 0, 1, 1});
    expect("floor", floor(x), {kNan, kInf, -kInf, 0, -0.0F, 1, -1});
    expect("ceil", ceil(x), {kNan, kInf, -kInf, 0, -0.0F, 1, -1});
    expect("round", round(x), {kNan, kInf, -kInf, 0, -0.0F, 1, -1});
    expect("reciprocal", reciprocal(x), {kNan, 0, -0.0F, kInf, -kInf, 1, -1});
    expect("leaky_relu", leaky_relu(x, 0.5), {kNan, kInf, -kInf, 0, -0.0F, 1, -0.5F});
    expect("sqrt", sqrt(x), {kNan, kInf, kNan, 0, -0.0F, 1, kNan});
    expect("rsqrt", rsqrt(x), {kNan, 0, kNan, kInf, -kInf, 1, kNan});
    const Tensor<TypeParam> e = exp(x);
    expect_same(floats(e.slice(0, 0, {}, 7)), repeat({kNan}, times), "exp(nan)");
    expect_same(floats(e.slice(0, 1, {}, 7)), repeat({kInf}, times), "exp(inf)");
    expect_same(floats(e.slice(0, 2, {}, 7)), repeat({0}, times), "exp(-inf)");
    expect_same(floats(e.slice(0, 4, {}, 7)), repeat({1}, times), "exp(-0)");
    expect("log", log(x), {kNan, kInf, kNan, -kInf, -kInf, 0, kNan});
    const std::vector<float> first5 = {0, 1, 2, 3, 4};
    auto head = [&](const Tensor<TypeParam>& y) { return floats(y.narrow(0, 0, 5)); };
    expect_same(head(log1p(x)), {kNan, kInf, kNan, 0, -0.0F}, "log1p");
    expect_same(head(expm1(x)), {kNan, kInf, -1, 0, -0.0F}, "expm1");
    expect_same(head(tanh(x)), {kNan, 1, -1, 0, -0.0F}, "tanh");
    expect_same(head(sigmoid(x)), {kNan, 1, 0, 0.5F, 0.5F}, "sigmoid");
    expect_same(head(sin(x)), {kNan, kNan, kNan, 0, -0.0F}, "sin");
    expect_same(head(cos(x)), {kNan, kNan, kNan, 1, 1}, "cos");
    EXPECT_TRUE(std::isnan(head(gelu(x))[0]));
    EXPECT_TRUE(std::isnan(head(gelu_tanh(x))[0]));
    EXPECT_TRUE(std::isnan(head(silu(x))[0]));
    EXPECT_TRUE(std::isnan(head(softplus(x))[0]));
    EXPECT_EQ(head(gelu(x))[1], kInf);
    EXPECT_EQ(head(softplus(x))[1], kInf);
    EXPECT_EQ(head(softplus(x))[2], 0);
  }
}

TYPED_TEST(SpecialValues, Predicates) {
  const Tensor<TypeParam> x = from_data<float>({kNan, kInf, -kInf, 0, -0.0F, 1}).to<TypeParam>();
  EXPECT_EQ(isnan(x).to_vector(), (std::vector<bool>{true, false, false, false, false, false}));
  EXPECT_EQ(isinf(x).to_vector(), (std::vector<bool>{false, true, true, false, false, false}));
  EXPECT_EQ(isfinite(x).to_vector(), (std::vector<bool>{false, false, false, true, true, true}));
  EXPECT_EQ(logical_not(x).to_vector(),
            (std::vector<bool>{false, false, false, true, true, false}));
}

TYPED_TEST(SpecialValues, Binary) {
  for (const int64_t times : {1, 30}) {
    const auto a = repeated<TypeParam>({kNan, 1, kNan, kInf, -kInf, 2}, times);
    const auto b = repeated<TypeParam>({1, kNan, kNan, 0, 0, 3}, times);
    auto expect = [&](const char* what, const Tensor<TypeParam>& y, std::vector<float> want) {
      expect_same(floats(y), repeat(want, times), what);
    };
    expect("maximum", maximum(a, b), {kNan, kNan, kNan, kInf, 0, 3});
    expect("minimum", minimum(a, b), {kNan, kNan, kNan, 0, -kInf, 2});
    expect("div", div(b, a), {kNan, kNan, kNan, 0, -0.0F, 1.5F});
    EXPECT_EQ(eq(a, a).to_vector()[0], false);
    EXPECT_EQ(ne(a, a).to_vector()[0], true);
    EXPECT_EQ(lt(a, b).to_vector()[1], false);
    EXPECT_EQ(logical_and(a, b).to_vector()[0], true);  // NaN is not zero
  }
}

TEST(Elementwise, RoundGoesToEven) {
  const auto x = from_data<float>({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 8388609.0F, 1e30F});
  expect_same(floats(round(x)), {0, 2, 2, -0.0F, -2, 8388609.0F, 1e30F}, "round");
}

TEST(Elementwise, EmptyAndScalar) {
  EXPECT_EQ(exp(Tensor<float>({0, 3})).shape(), Shape({0, 3}));
  EXPECT_EQ(add(Tensor<float>({0, 1}), Tensor<float>({1, 4})).shape(), Shape({0, 4}));
  EXPECT_EQ(lt(Tensor<int64_t>({2, 0}), Tensor<int64_t>({2, 1})).numel(), 0);
  EXPECT_EQ((scalar(2.0F) * scalar(3.0F)).item(), 6.0F);
  EXPECT_EQ((scalar(2.0F) * scalar(3.0F)).rank(), 0);
}

// --- integers and bool

TEST(Elementwise, Integers) {
  const auto a = from_data<int32_t>({-3, 0, 7});
  const auto b = from_data<int32_t>({2, -5, 7});
  using I = std::vector<int32_t>;
  EXPECT_EQ((a + b).to_vector(), (I{-1, -5, 14}));
  EXPECT_EQ((a - b).to_vector(), (I{-5, 5, 0}));
  EXPECT_EQ((a * b).to_vector(), (I{-6, 0, 49}));
  EXPECT_EQ(maximum(a, b).to_vector(), (I{2, 0, 7}));
  EXPECT_EQ(minimum(a, b).to_vector(), (I{-3, -5, 7}));
  EXPECT_EQ(neg(a).to_vector(), (I{3, 0, -7}));
  EXPECT_EQ(abs(a).to_vector(), (I{3, 0, 7}));
  EXPECT_EQ(sign(a).to_vector(), (I{-1, 0, 1}));
  EXPECT_EQ(square(a).to_vector(), (I{9, 0, 49}));
  EXPECT_EQ(relu(a).to_vector(), (I{0, 0, 7}));
  EXPECT_EQ(clamp(a, -1, 5).to_vector(), (I{-1, 0, 5}));
  EXPECT_EQ((a + 2).to_vector(), (I{-1, 2, 9}));
  EXPECT_EQ((2 - a).to_vector(), (I{5, 2, -5}));
  EXPECT_EQ((a * -2).to_vector(), (I{6, 0, -14}));
  EXPECT_EQ(eq(a, b).to_vector(), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(lt(a, 0).to_vector(), (std::vector<bool>{true, false, false}));
}

TEST(Elementwise, LargeIntegersAreExact) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const auto x = from_data<int64_t>({big});
  EXPECT_EQ((x + 2).item(), big + 2);
  EXPECT_EQ((x - 1).item(), big - 1);
  EXPECT_EQ(clamp(x, 0, big - 1).item(), big - 1);
  EXPECT_EQ(maximum(x, x + 1).item(), big + 1);
}

TEST(Elementwise, IntegersWrap) {
  constexpr int32_t least = std::numeric_limits<int32_t>::min();
  constexpr int32_t most = std::numeric_limits<int32_t>::max();
  using Values = std::vector<int32_t>;
  const auto x = from_data<int32_t>({least, most});
  EXPECT_EQ((x + ones_like(x)).to_vector(), (Values{least + 1, least}));
  EXPECT_EQ((x - ones_like(x)).to_vector(), (Values{most, most - 1}));
  EXPECT_EQ((x * x).to_vector(), (Values{0, 1}));
  EXPECT_EQ((x + 1).to_vector(), (Values{least + 1, least}));
  EXPECT_EQ((1 - x).to_vector(), (Values{least + 1, 1 - most}));
  EXPECT_EQ((x * 2).to_vector(), (Values{0, -2}));
  EXPECT_EQ(neg(x).to_vector(), (Values{least, -most}));
  EXPECT_EQ(abs(x).to_vector(), (Values{least, most}));
  EXPECT_EQ(square(x).to_vector(), (Values{0, 1}));
}

TEST(Elementwise, UnsignedScalarsSubtract) {
  EXPECT_EQ((from_data<float>({5}) - 2U).item(), 3.0F);
  EXPECT_EQ((from_data<int64_t>({5}) - size_t{7}).item(), -2);
  EXPECT_EQ((from_data<int64_t>({0}) - std::numeric_limits<int64_t>::min()).item(),
            std::numeric_limits<int64_t>::min());
}

TEST(Elementwise, UnsignedBytesWrap) {
  const auto x = from_data<uint8_t>({250, 3});
  EXPECT_EQ((x + 10).to_vector(), (std::vector<uint8_t>{4, 13}));
  EXPECT_EQ(neg(x).to_vector(), (std::vector<uint8_t>{6, 253}));
  EXPECT_EQ((x * x).to_vector(), (std::vector<uint8_t>{36, 9}));
}

TEST(Elementwise, Booleans) {
  const auto a = from_data<bool>({false, false, true, true});
  const auto b = from_data<bool>({false, true, false, true});
  using B = std::vector<bool>;
  EXPECT_EQ(logical_and(a, b).to_vector(), (B{false, false, false, true}));
  EXPECT_EQ(logical_or(a, b).to_vector(), (B{false, true, true, true}));
  EXPECT_EQ(logical_xor(a, b).to_vector(), (B{false, true, true, false}));
  EXPECT_EQ(logical_not(a).to_vector(), (B{true, true, false, false}));
  EXPECT_EQ(eq(a, b).to_vector(), (B{true, false, false, true}));
}

// --- out and in-place forms

TEST(ElementwiseOut, WritesWhereAsked) {
  const auto a = from_data<float>({1, 2, 3, 4}, {2, 2});
  Tensor<float> out = zeros<float>({2, 4});
  const Tensor<float> target = out.slice(1, 0, {}, 2);
  EXPECT_EQ(add_out(target, a, a).data(), target.data());
  EXPECT_EQ(out.to_vector(), (std::vector<float>{2, 0, 4, 0, 6, 0, 8, 0}));
  clamp_out(target, a, 2, 3);
  EXPECT_EQ(out.to_vector(), (std::vector<float>{2, 0, 2, 0, 3, 0, 3, 0}));
  Tensor<bool> less({2, 2});
  lt_out(less, a, full<float>({2, 2}, 3));
  EXPECT_EQ(less.to_vector(), (std::vector<bool>{true, true, false, false}));
  isnan_out(less, a);
  EXPECT_EQ(less.to_vector(), (std::vector<bool>(4, false)));
}

TEST(ElementwiseOut, InPlaceCountsAsAWrite) {
  Tensor<float> x = from_data<float>({-1, 4});
  const uint64_t before = x.any().storage().version();
  relu_(x);
  mul_scalar_(x, 3);
  sub_(x, from_data<float>({1, 1}));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{-1, 11}));
  EXPECT_EQ(x.any().storage().version(), before + 3);
}

TEST(ElementwiseOut, BroadcastsOnlyTheInput) {
  Tensor<float> x = ones<float>({2, 3});
  add_(x, from_data<float>({1, 2, 3}));
  EXPECT_EQ(x.to_vector(), (std::vector<float>{2, 3, 4, 2, 3, 4}));
  EXPECT_MESSAGE(ShapeError, add_(from_data<float>({1, 2, 3}), x),
                 "[add] expected an output of shape (2, 3), got (3)");
}

TEST(ElementwiseOut, PartialOverlapBehavesAsIfCloned) {
  const auto make = [] { return arange<float>(0, 10); };
  for (const int64_t shift : {1, 3}) {
    for (const bool forward : {true, false}) {
      const Tensor<float> x = make();
      const Tensor<float> low = x.narrow(0, 0, 10 - shift);
      const Tensor<float> high = x.narrow(0, shift, 10 - shift);
      const Tensor<float>& from = forward ? low : high;
      const Tensor<float>& to = forward ? high : low;
      const std::vector<float> want = add(from.clone(), to.clone()).to_vector();
      add_out(to, from, to);
      EXPECT_EQ(to.to_vector(), want) << shift << forward;
    }
  }
  const Tensor<float> m = arange<float>(0, 9).view({3, 3});
  neg_out(m, m.t());
  EXPECT_EQ(m.to_vector(), (std::vector<float>{-0.0F, -3, -6, -1, -4, -7, -2, -5, -8}));
  const Tensor<float> r = make();
  square_out(r, r.slice(0, {}, {}, 1).with(r.layout().flip({0})));
  EXPECT_EQ(r.to_vector(), (std::vector<float>{81, 64, 49, 36, 25, 16, 9, 4, 1, 0}));
}

TEST(ElementwiseOut, SelfOverlapThrowsBeforeWriting) {
  const Tensor<float> x = ones<float>({1, 3});
  const Tensor<float> wide = x.expand({2, 3});
  EXPECT_MESSAGE(ShapeError, add_(wide, wide), "[add] expected an output whose elements do not");
  EXPECT_MESSAGE(ShapeError, exp_(wide), "[exp] expected an output whose elements do not overlap");
  EXPECT_EQ(x.to_vector(), (std::vector<float>{1, 1, 1}));
}

TEST(Elementwise, ResultsKeepTheStrideOrder) {
  Tensor<float> x({2, 3, 4, 5}, kCpu, MemoryFormat::channels_last);
  x.fill_(1);
  EXPECT_TRUE(exp(x).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE((x + x).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE((x + ones<float>({3, 1, 1})).is_contiguous(MemoryFormat::channels_last));
  EXPECT_TRUE((ones<float>({3, 1, 1}) * x).is_contiguous(MemoryFormat::channels_last));
  EXPECT_EQ(relu(ones<float>({4, 6}).t()).strides(), Strides({1, 6}));
}

// --- errors

TEST(ElementwiseErrors, NameOperatorAndShapes) {
  const Tensor<float> a({2, 3});
  const Tensor<float> b({4});
  EXPECT_MESSAGE(ShapeError, a + b, "[add] expected");
  EXPECT_MESSAGE(ShapeError, a + b, "(2, 3)");
  EXPECT_MESSAGE(ShapeError, a + b, "(4)");
  EXPECT_MESSAGE(ShapeError, eq(a, b), "[eq] expected");
  EXPECT_MESSAGE(ShapeError, exp_out(b, a), "[exp] expected an output of shape (2, 3), got (4)");
  EXPECT_MESSAGE(ShapeError, exp(Tensor<float>()), "[exp] expected defined tensors");
  EXPECT_MESSAGE(ShapeError, a * Tensor<float>(), "[mul] expected defined tensors");
  EXPECT_MESSAGE(ShapeError, exp_out(Tensor<float>(), a), "[exp] expected an output");
  EXPECT_MESSAGE(TypeError, a.any().as<double>("exp"), "float64");
}

TEST(ElementwiseErrors, SavedTensorsMayNotChange) {
  Variable<float> x(from_data<float>({1, 2}), true);
  Variable<float> y = log(x);
  x.value().fill_(3);
  EXPECT_MESSAGE(Error, y.backward(ones<float>({2})), "[log] expected the tensor of shape (2)");
}

// --- gradients at kinks

TEST(ElementwiseGradient, Kinks) {
  auto gradient = [](auto f, const std::vector<float>& values) {
    Variable<float> x(from_data<float>(values, {static_cast<int64_t>(values.size())}), true);
    f(x).backward(ones<float>(x.shape()));
    return x.grad().to_vector();
  };
  auto of = [](auto... v) { return std::vector<float>{static_cast<float>(v)...}; };
  EXPECT_EQ(gradient([](const auto& x) { return relu(x); }, {-1, 0, 2}), of(0, 0, 1));
  EXPECT_EQ(gradient([](const auto& x) { return abs(x); }, {-1, 0, 2}), of(-1, 0, 1));
  EXPECT_EQ(gradient([](const auto& x) { return clamp(x, 0, 1); }, {-1, 0, 1, 2}), of(0, 1, 1, 0));
  EXPECT_EQ(gradient([](const auto& x) { return sign(x); }, {-1, 0, 2}), of(0, 0, 0));
  EXPECT_EQ(gradient([](const auto& x) { return pow_scalar(x, 0); }, {0, 2}), of(0, 0));
  EXPECT_EQ(gradient([](const auto& x) { return maximum(x, x * 1.0F); }, {3}), of(1));
}

// --- the list

class KernelNames : public KernelObserver {
 public:
  void begin(const char* kernel, Device, const Cost&) override { names.insert(kernel); }
  void end() override {}
  std::set<std::string> names;
};

TEST(ElementwiseList, EveryOperatorHasAnOpCase) {
  std::set<std::string> named;
  KernelNames launched;
  {
    const ObserveKernels scope(launched);
    for (const cases::OpCase& c : cases::all()) {
      named.insert(c.name.substr(0, c.name.find('/')));
      if (!c.benchmark) (void)c.run(cases::make_inputs(c, DType::float32));
    }
  }
#define GABLE_EXPECT_CASE(function, F)                                                 \
  EXPECT_EQ(named.count(#function), 1U) << "no op case named " #function;              \
  EXPECT_EQ(launched.names.count(F::name), 1U) << "no op case runs the kernel of " #F; \
  EXPECT_STREQ(F::name, #function);
  GABLE_UNARY_FLOAT_OPS(GABLE_EXPECT_CASE)
  GABLE_UNARY_NUMERIC_OPS(GABLE_EXPECT_CASE)
  GABLE_PREDICATE_FLOAT_OPS(GABLE_EXPECT_CASE)
  GABLE_PREDICATE_ALL_OPS(GABLE_EXPECT_CASE)
  GABLE_BINARY_FLOAT_OPS(GABLE_EXPECT_CASE)
  GABLE_BINARY_NUMERIC_OPS(GABLE_EXPECT_CASE)
  GABLE_COMPARE_OPS(GABLE_EXPECT_CASE)
}

}  // namespace
}  // namespace gable
