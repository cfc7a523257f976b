// SPDX-License-Identifier: Apache-2.0
// Runs every shared op case: values against the float64 reference on contiguous and strided
// inputs in every float dtype, gradients against central differences, and untouched inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cases/op_case.hpp"
#include "gable/autograd/gradcheck.hpp"

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

class OpCaseTest : public testing::TestWithParam<size_t> {
 protected:
  const OpCase& op() const { return all()[GetParam()]; }
};

TEST_P(OpCaseTest, MatchesReference) {
  for (const DType dtype : dtypes_of(op())) {
    const std::vector<AnyTensor> inputs = make_inputs(op(), dtype);
    const Tensor<double> want = op().reference(in_double(inputs));
    for (int variant = 0; variant < kLayoutVariants; ++variant) {
      std::vector<AnyTensor> strided;
      for (const AnyTensor& x : inputs) strided.push_back(in_layout(x, variant));
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
    for (const AnyTensor& x : inputs) strided.push_back(in_layout(x, variant).as<double>());
    GradcheckOptions options;
    options.step = op().gradient_step;
    const GradcheckResult r = gradcheck(op().run_grad, strided, options);
    EXPECT_TRUE(r.ok) << op().name << " layout " << variant << ": " << r.message;
  }
}

std::string case_name(const testing::TestParamInfo<size_t>& info) {
  std::string name = all()[info.param].name;
  for (char& ch : name)
    if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, OpCaseTest, testing::Range<size_t>(0, all().size()), case_name);

TEST(OpCases, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& c : all()) EXPECT_TRUE(names.insert(c.name).second) << c.name;
  EXPECT_FALSE(names.empty());
}

}  // namespace
}  // namespace gable::cases
