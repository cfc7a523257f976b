// SPDX-License-Identifier: Apache-2.0
// operator<< for tensors and their parts. Not part of gable.hpp, which needs no streams.
#pragma once

#include <ostream>

#include "gable/tensor/tensor.hpp"

namespace gable {

/// Values as to_string() prints them; takes Tensor<T> too.
inline std::ostream& operator<<(std::ostream& out, const AnyTensor& tensor) {
  return out << to_string(tensor);
}
template <Element T>
std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  return out << to_string(tensor.any());
}
inline std::ostream& operator<<(std::ostream& out, const Dims& dims) { return out << concat(dims); }
inline std::ostream& operator<<(std::ostream& out, const Layout& l) { return out << concat(l); }
inline std::ostream& operator<<(std::ostream& out, DType t) { return out << name(t); }
inline std::ostream& operator<<(std::ostream& out, Device d) { return out << concat(d); }
inline std::ostream& operator<<(std::ostream& out, half h) { return out << static_cast<float>(h); }
inline std::ostream& operator<<(std::ostream& out, bfloat16 b) {
  return out << static_cast<float>(b);
}

}  // namespace gable
