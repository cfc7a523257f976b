// SPDX-License-Identifier: Apache-2.0
// The Eigen bridge: maps over any strides, copies from expressions, errors.
#include "gable/tensor/eigen.hpp"

#include <gtest/gtest.h>

#include "errors.hpp"

namespace gable {
namespace {

using Floats = std::vector<float>;

TEST(Eigen, MapsReadAnyStrides) {
  const auto x = arange<float>(12).view({3, 4});
  const Tensor<float> views[] = {x,
                                 x.t(),
                                 x.slice(1, 1, {}, 2),
                                 x.slice(0, {}, {}, -1),
                                 x.narrow(0, 1, 1).expand({3, 4}),
                                 x.narrow(0, 0, 0)};
  for (const auto& v : views) {
    const auto m = const_matrix_map(v);
    ASSERT_EQ(m.rows(), v.size(0));
    ASSERT_EQ(m.cols(), v.size(1));
    for (int64_t i = 0; i < v.size(0); ++i)
      for (int64_t j = 0; j < v.size(1); ++j) EXPECT_EQ(m(i, j), v(i, j));
  }
  EXPECT_EQ(const_vector_map(x.select(1, 2)).sum(), 2 + 6 + 10);
  EXPECT_EQ(const_array_map(x.t()).maxCoeff(), 11);
}

TEST(Eigen, MapsWriteThrough) {
  const auto x = zeros<double>({2, 3});
  const uint64_t version = x.any().storage().version();
  matrix_map(x.t()) = Eigen::MatrixXd::Constant(3, 2, 1.5);
  array_map(x) += 1;
  vector_map(x.select(1, 0)).setZero();
  EXPECT_EQ(x.to_vector(), (std::vector<double>{0, 2.5, 2.5, 0, 2.5, 2.5}));
  EXPECT_EQ(x.any().storage().version(), version + 3);  // seen by autograd
}

TEST(Eigen, ProductOfMaps) {
  const auto a = arange<float>(6).view({2, 3});
  const auto c = zeros<float>({2, 2});
  matrix_map(c).noalias() = const_matrix_map(a) * const_matrix_map(a.t());
  EXPECT_EQ(c.to_vector(), (Floats{5, 14, 14, 50}));
}

TEST(Eigen, TensorsFromExpressions) {
  Eigen::MatrixXf m(2, 3);  // column-major
  m << 1, 2, 3, 4, 5, 6;
  EXPECT_EQ(from_eigen(m).to_vector(), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(from_eigen(m.transpose() * 2).shape(), (Shape{3, 2}));
  EXPECT_EQ(from_eigen(m.row(1)).shape(), (Shape{3}));
  EXPECT_EQ(from_eigen(Eigen::VectorXi::LinSpaced(3, 1, 3)).to_vector(),
            (std::vector<int32_t>{1, 2, 3}));
  EXPECT_EQ(from_eigen(Eigen::ArrayXXd::Zero(0, 4)).shape(), (Shape{0, 4}));
}

TEST(Eigen, Errors) {
  const auto x = zeros<float>({2, 3, 4});
  EXPECT_HAS(error_of<ShapeError>([&] { (void)matrix_map(x); }),
             "[matrix_map] expected a tensor of rank 2, got shape (2, 3, 4)");
  EXPECT_HAS(error_of<ShapeError>([&] { (void)const_vector_map(x.select(0, 0)); }), "rank 1");
  EXPECT_HAS(error_of<ShapeError>([] { (void)matrix_map(Tensor<float>()); }), "[matrix_map]");
  EXPECT_HAS(error_of<ShapeError>([] {
               (void)array_map(ones<float>({1, 3}).expand({2, 3}));
             }),
             "overlap");
}

}  // namespace
}  // namespace gable
