// SPDX-License-Identifier: Apache-2.0
// Runs every shared op case on every device: values against the float64 reference on contiguous
// and strided inputs in every float dtype, gradients against central differences, gradients in
// float and bfloat16 against the CPU's in double, and untouched inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cases/op_case.hpp"
#include "gable/autograd/gradcheck.hpp"
#include "gable/memory/cuda.hpp"

namespace gable::cases {
namespace {

const std::vector<DType> kAllFloats = {DType::float32, DType::float64, DType::float16,
                                       DType::bfloat16};

std::vector<DType> dtypes_of(const OpCase& c) {
  return c.small_floats ? kAllFloats : std::vector<DType>{DType::float32, DType::float64};
}

void expect_close(const AnyTensor& got, const Tensor<double>& want, Tolerance t,
                  const std::string& what) {
  ASSERT_EQ(concat(got.shape()), concat(want.shape())) << what;
  const std::vector<double> g = got.to(DType::float64).as<double>().to_vector();
  const std::vector<double> w = want.to_vector();
  for (size_t i = 0; i < g.size(); ++i) {
    if (std::isnan(w[i]) && std::isnan(g[i])) continue;
    if (w[i] == g[i]) continue;  // infinities
    ASSERT_LE(std::abs(g[i] - w[i]), t.absolute + t.relative * std::abs(w[i]))
        << what << ": element " << i << ", got " << g[i] << ", want " << w[i];
  }
}

std::vector<Tensor<double>> in_double(const std::vector<AnyTensor>& inputs) {
  std::vector<Tensor<double>> out;
  for (const AnyTensor& x : inputs) out.push_back(x.to(DType::float64).contiguous().as<double>());
  return out;
}

struct Parameter {
  size_t index;
  DeviceType device;
};

class OpCaseTest : public testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    if (GetParam().device == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  const OpCase& op() const { return all()[GetParam().index]; }
  Device device() const { return {GetParam().device, 0}; }
};

TEST_P(OpCaseTest, MatchesReference) {
  for (const DType dtype : dtypes_of(op())) {
    const std::vector<AnyTensor> inputs = make_inputs(op(), dtype);
    const Tensor<double> want = op().reference(in_double(inputs));
    for (int variant = 0; variant < kLayoutVariants; ++variant) {
      std::vector<AnyTensor> strided;
      for (const AnyTensor& x : inputs) strided.push_back(in_layout(x.to(device()), variant));
      const std::string what = concat(op().name, " ", dtype, " layout ", variant);
      expect_close(op().run(strided), want, op().tolerance(dtype), what);
      for (size_t i = 0; i < inputs.size(); ++i)  // operators leave their inputs alone
        expect_close(strided[i], in_double({inputs[i]})[0], {0, 0}, what + " input");
    }
  }
}

TEST_P(OpCaseTest, GradientMatchesCentralDifferences) {
  if (!op().gradient) GTEST_SKIP() << "not differentiable";
  const std::vector<AnyTensor> inputs = make_inputs(op(), DType::float64);
  for (const int variant : {0, 1, 2}) {
    std::vector<Tensor<double>> strided;
    for (const AnyTensor& x : inputs)
      strided.push_back(in_layout(x.to(device()), variant).as<double>());
    GradcheckOptions options;
    options.step = op().gradient_step;
    const GradcheckResult r = gradcheck(op().run_grad, strided, options);
    EXPECT_TRUE(r.ok) << op().name << " layout " << variant << ": " << r.message;
  }
}

std::string case_name(const testing::TestParamInfo<Parameter>& info) {
  std::string name = all()[info.param.index].name;
  for (char& ch : name)
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  return name;
}

// Large cases too, whose gradient is not checked by differences.
TEST_P(OpCaseTest, GradientMatchesDouble) {
  if (!op().backward) GTEST_SKIP() << "not differentiable";
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    if (dtype == DType::bfloat16 && !op().small_floats) continue;
    const std::vector<AnyTensor> inputs = make_inputs(op(), dtype);
    std::vector<AnyTensor> exact;
    for (const AnyTensor& x : inputs) exact.push_back(x.to(DType::float64));
    Generator generator(7);
    const Tensor<double> dy =
        rand<double>(op().run(exact).shape(), 0.5, 1.5, {}, generator).to<bfloat16>().to<double>();
    const std::vector<AnyTensor> want = op().backward(exact, dy);
    for (const int variant : {0, 1, 4}) {
      std::vector<AnyTensor> strided;
      for (const AnyTensor& x : inputs) strided.push_back(in_layout(x.to(device()), variant));
      const std::vector<AnyTensor> got = op().backward(strided, dy);
      for (size_t i = 0; i < want.size(); ++i) {
        const std::string what =
            concat(op().name, " ", dtype, " layout ", variant, " gradient of input ", i);
        ASSERT_EQ(got[i].defined(), want[i].defined()) << what;
        if (!want[i].defined()) continue;
        ASSERT_EQ(concat(got[i].shape()), concat(want[i].shape())) << what;
        const std::vector<double> g = got[i].to(DType::float64).as<double>().to_vector();
        const std::vector<double> w = want[i].as<double>().to_vector();
        double error = 0;
        double norm = 0;
        for (size_t e = 0; e < w.size(); ++e) {
          if (std::isnan(w[e]) && std::isnan(g[e])) continue;
          if (w[e] == g[e]) continue;
          error += (g[e] - w[e]) * (g[e] - w[e]);
          norm += w[e] * w[e];
        }
        // Operators that only move values are exact; sums of their gradients round all the same.
        const double rounding = dtype == DType::bfloat16 ? 8e-3 : 1e-6;
        const Tolerance t = op().tolerance(dtype);
        ASSERT_LE(std::sqrt(error),
                  4 * (t.absolute + std::max(t.relative, rounding) * std::sqrt(norm)))
            << what << ", norm " << std::sqrt(norm);
      }
    }
  }
}

std::vector<Parameter> cases_on(DeviceType device) {
  std::vector<Parameter> out;
  for (size_t i = 0; i < all().size(); ++i) out.push_back({i, device});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Cpu, OpCaseTest, testing::ValuesIn(cases_on(DeviceType::cpu)), case_name);
INSTANTIATE_TEST_SUITE_P(Cuda, OpCaseTest, testing::ValuesIn(cases_on(DeviceType::cuda)),
                         case_name);

TEST(OpCases, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& c : all()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace gable::cases
