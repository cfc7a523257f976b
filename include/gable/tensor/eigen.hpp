// SPDX-License-Identifier: Apache-2.0
// Bridge to Eigen: maps of tensors without a copy, and tensors from Eigen expressions. Not part of
// gable.hpp; link Eigen3::Eigen yourself.
#pragma once

#include <Eigen/Core>
#include <type_traits>

#include "gable/tensor/tensor.hpp"

namespace gable {

/// Element types that Eigen computes in: all but half and bfloat16.
template <class T>
concept EigenElement = Element<T> && std::is_arithmetic_v<T>;

template <class T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenArray = Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using EigenVector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
using EigenStride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;

template <class Plain>
using EigenMap = Eigen::Map<Plain, Eigen::Unaligned, EigenStride>;
template <class Plain>
using EigenVectorMap = Eigen::Map<Plain, Eigen::Unaligned, Eigen::InnerStride<>>;

namespace detail {

template <class T>
void check_eigen(Where where, const Tensor<T>& x, int rank) {
  check(x.defined() && x.rank() == rank, where, "expected a tensor of rank ", rank, ", got shape ",
        x.shape());
  check<DeviceError>(x.device() == kCpu, where, "expected a tensor on cpu, got ", x.device());
}

template <class Plain, class T>
EigenMap<Plain> map_2d(T* data, const Layout& l) {
  return {data, l.size(0), l.size(1), EigenStride(l.stride(0), l.stride(1))};
}

}  // namespace detail

/// A writable Eigen map of a rank-2 tensor with any strides; the tensor keeps the memory alive.
/// Counts as an in-place write. Throws ShapeError (rank; elements that overlap), DeviceError.
template <EigenElement T>
[[nodiscard]] EigenMap<EigenMatrix<T>> matrix_map(const Tensor<T>& x) {
  detail::check_eigen("matrix_map", x, 2);
  return detail::map_2d<EigenMatrix<T>>(x.write_view("matrix_map").data, x.layout());
}
/// The same for reading; elements may overlap (expanded tensors).
template <EigenElement T>
[[nodiscard]] EigenMap<const EigenMatrix<T>> const_matrix_map(const Tensor<T>& x) {
  detail::check_eigen("const_matrix_map", x, 2);
  return detail::map_2d<const EigenMatrix<T>>(x.data(), x.layout());
}

/// As matrix_map, for coefficient-wise expressions.
template <EigenElement T>
[[nodiscard]] EigenMap<EigenArray<T>> array_map(const Tensor<T>& x) {
  detail::check_eigen("array_map", x, 2);
  return detail::map_2d<EigenArray<T>>(x.write_view("array_map").data, x.layout());
}
template <EigenElement T>
[[nodiscard]] EigenMap<const EigenArray<T>> const_array_map(const Tensor<T>& x) {
  detail::check_eigen("const_array_map", x, 2);
  return detail::map_2d<const EigenArray<T>>(x.data(), x.layout());
}

/// A column vector over a rank-1 tensor.
template <EigenElement T>
[[nodiscard]] EigenVectorMap<EigenVector<T>> vector_map(const Tensor<T>& x) {
  detail::check_eigen("vector_map", x, 1);
  return {x.write_view("vector_map").data, x.numel(), Eigen::InnerStride<>(x.stride(0))};
}
template <EigenElement T>
[[nodiscard]] EigenVectorMap<const EigenVector<T>> const_vector_map(const Tensor<T>& x) {
  detail::check_eigen("const_vector_map", x, 1);
  return {x.data(), x.numel(), Eigen::InnerStride<>(x.stride(0))};
}

/// A copy of an Eigen matrix, array or expression: rank 1 for types that are vectors at compile
/// time, else (rows, cols).
template <class Derived>
requires EigenElement<typename Derived::Scalar>
[[nodiscard]] Tensor<typename Derived::Scalar> from_eigen(const Eigen::DenseBase<Derived>& values) {
  using T = typename Derived::Scalar;
  Tensor<T> out({values.rows(), values.cols()});
  // Row-major memory, whatever the order of the source.
  EigenArray<T>::Map(out.data(), values.rows(), values.cols()) = values.derived().array();
  return Derived::IsVectorAtCompileTime ? out.view({values.size()}) : out;
}

}  // namespace gable
