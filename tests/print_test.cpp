// SPDX-License-Identifier: Apache-2.0
// Text of tensors, alone and on streams.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "gable/autograd/variable.hpp"
#include "gable/tensor/ostream.hpp"

namespace gable {
namespace {

TEST(Print, Integers) {
  EXPECT_EQ(to_string(arange<int32_t>(6).view({2, 3})),
            "[[0, 1, 2],\n [3, 4, 5]]\nshape (2, 3), int32, cpu");
  EXPECT_EQ(to_string(from_data<int64_t>({-100, 7})), "[-100,    7]\nshape (2), int64, cpu");
  EXPECT_EQ(to_string(from_data<int64_t>({std::numeric_limits<int64_t>::min()})),
            "[-9223372036854775808]\nshape (1), int64, cpu");
  EXPECT_EQ(to_string(from_data<uint8_t>({65, 255})), "[ 65, 255]\nshape (2), uint8, cpu");
  EXPECT_EQ(to_string(from_data<bool>({true, false})), "[ true, false]\nshape (2), bool, cpu");
}

TEST(Print, Reals) {
  EXPECT_EQ(to_string(from_data<float>({1, 2.5F, -3})),
            "[ 1.0000,  2.5000, -3.0000]\nshape (3), float32, cpu");
  EXPECT_EQ(to_string(from_data<float>({1, 20, 300})),
            "[  1.,  20., 300.]\nshape (3), float32, cpu");
  EXPECT_EQ(to_string(from_data<double>({1e-6, 1})),
            "[1.0000e-06, 1.0000e+00]\nshape (2), float64, cpu");
  EXPECT_EQ(to_string(from_data<double>({1.5e9})), "[1.5000e+09]\nshape (1), float64, cpu");
  EXPECT_EQ(to_string(from_data<float>({NAN, INFINITY, -INFINITY, 0.5F})),
            "[   nan,    inf,   -inf, 0.5000]\nshape (4), float32, cpu");
  EXPECT_EQ(to_string(from_data<half>({half(0.5F)})), "[0.5000]\nshape (1), float16, cpu");
  EXPECT_EQ(to_string(from_data<bfloat16>({bfloat16(2.0F)})), "[2.]\nshape (1), bfloat16, cpu");
  EXPECT_EQ(to_string(full<double>({1}, 1e300)), "[1.0000e+300]\nshape (1), float64, cpu");
}

TEST(Print, ShapesOfEveryKind) {
  EXPECT_EQ(to_string(scalar<float>(3.5F)), "3.5000\nshape (), float32, cpu");
  EXPECT_EQ(to_string(zeros<float>({2, 0})), "[]\nshape (2, 0), float32, cpu");
  EXPECT_EQ(to_string(Tensor<float>()), "undefined tensor");
  EXPECT_EQ(to_string(arange<int32_t>(8).view({2, 2, 2})),
            "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]\nshape (2, 2, 2), int32, cpu");
  EXPECT_EQ(to_string(arange<int32_t>(6).view({2, 3}).t()),
            "[[0, 3],\n [1, 4],\n [2, 5]]\nshape (3, 2), int32, cpu");
}

TEST(Print, LongOnesAreShortened) {
  EXPECT_EQ(to_string(arange<int32_t>(2000)),
            "[   0,    1,    2, ..., 1997, 1998, 1999]\nshape (2000), int32, cpu");
  EXPECT_EQ(to_string(zeros<int32_t>({2, 1000})),
            "[[0, 0, 0, ..., 0, 0, 0],\n [0, 0, 0, ..., 0, 0, 0]]\nshape (2, 1000), int32, cpu");
  const std::string tall = to_string(zeros<int32_t>({1000, 2}));
  EXPECT_NE(tall.find(" [0, 0],\n ...,\n [0, 0],"), std::string::npos) << tall;
  const std::string whole = to_string(arange<int32_t>(1000));
  EXPECT_EQ(whole.find("..."), std::string::npos);
  std::istringstream lines(whole);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 82U);
}

TEST(Print, Streams) {
  std::ostringstream out;
  out << arange<int32_t>(2) << '|' << arange<int32_t>(2).any() << '|' << Shape{2, 3} << '|'
      << DType::bfloat16 << '|' << kCpu << '|' << Layout({2}) << '|' << half(0.5F);
  EXPECT_EQ(out.str(),
            "[0, 1]\nshape (2), int32, cpu|[0, 1]\nshape (2), int32, cpu|(2, 3)|bfloat16|cpu|(2) "
            "strides (1) offset 0|0.5");
}

TEST(Print, Variables) {
  EXPECT_EQ(to_string(Variable<float>(ones<float>({1}), true)),
            "[1.]\nshape (1), float32, cpu, requires grad");
  EXPECT_EQ(to_string(Variable<float>(ones<float>({1}))), "[1.]\nshape (1), float32, cpu");
}

}  // namespace
}  // namespace gable
