// SPDX-License-Identifier: Apache-2.0
// Variable<T>: a Tensor with its place in the backward graph; Parameter<T>: one that is trained.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gable/autograd/node.hpp"
#include "gable/ops/op.hpp"
#include "gable/ops/view.hpp"
#include "gable/tensor/tensor.hpp"

namespace gable {

/// A cheap handle to a value and its node. Operators on Variables record what backward needs;
/// operators on the plain Tensor value() never do.
template <Element T>
class Variable {
 public:
  using value_type = T;
  using is_variable = void;

  Variable() = default;
  /// A constant, or with `requires_grad` a leaf that collects a gradient of type Compute<T>.
  Variable(Tensor<T> value, bool requires_grad = false)  // NOLINT(google-explicit-constructor)
      : value_(std::move(value)) {
    if (requires_grad) make_leaf();
  }
  /// The output of a recorded operator.
  Variable(Tensor<T> value, NodePtr node) : value_(std::move(value)), node_(std::move(node)) {}

  [[nodiscard]] const Tensor<T>& value() const { return value_; }
  [[nodiscard]] bool defined() const { return value_.defined(); }
  [[nodiscard]] const Shape& shape() const { return value_.shape(); }
  [[nodiscard]] int rank() const { return value_.rank(); }
  [[nodiscard]] int64_t numel() const { return value_.numel(); }
  [[nodiscard]] int64_t size(int64_t dim) const { return value_.size(dim); }
  [[nodiscard]] Device device() const { return value_.device(); }
  [[nodiscard]] const Layout& layout() const { return value_.layout(); }
  [[nodiscard]] T item() const { return value_.item(); }

  [[nodiscard]] bool requires_grad() const { return node_ != nullptr; }
  [[nodiscard]] const NodePtr& node() const { return node_; }

  // --- views, recorded; as the members of Tensor

  [[nodiscard]] Variable narrow(int64_t dim, int64_t start, int64_t length) const {
    return gable::narrow(*this, dim, start, length);
  }
  [[nodiscard]] Variable select(int64_t dim, int64_t index) const {
    return gable::select(*this, dim, index);
  }
  [[nodiscard]] Variable slice(int64_t dim, std::optional<int64_t> start = {},
                               std::optional<int64_t> stop = {}, int64_t step = 1) const {
    return gable::slice(*this, dim, start, stop, step);
  }
  [[nodiscard]] Variable operator[](int64_t index) const { return select(0, index); }
  [[nodiscard]] Variable transpose(int64_t a, int64_t b) const {
    return gable::transpose(*this, a, b);
  }
  [[nodiscard]] Variable t() const { return transpose(-2, -1); }
  [[nodiscard]] Variable permute(const Dims& order) const { return gable::permute(*this, order); }
  [[nodiscard]] Variable squeeze(int64_t dim) const { return gable::squeeze(*this, dim); }
  [[nodiscard]] Variable squeeze() const { return gable::squeeze(*this); }
  [[nodiscard]] Variable unsqueeze(int64_t dim) const { return gable::unsqueeze(*this, dim); }
  [[nodiscard]] Variable view(const Shape& shape) const { return gable::view(*this, shape); }
  [[nodiscard]] Variable reshape(const Shape& shape) const { return gable::reshape(*this, shape); }
  [[nodiscard]] Variable flatten(int64_t first = 0, int64_t last = -1) const {
    return gable::flatten(*this, first, last);
  }
  [[nodiscard]] Variable expand(const Shape& shape) const { return gable::expand(*this, shape); }
  [[nodiscard]] Variable broadcast_to(const Shape& shape) const {
    return gable::broadcast_to(*this, shape);
  }
  [[nodiscard]] Variable unfold(int64_t dim, int64_t size, int64_t step) const {
    return gable::unfold(*this, dim, size, step);
  }
  [[nodiscard]] Variable diagonal(int64_t offset = 0, int64_t a = 0, int64_t b = 1) const {
    return gable::diagonal(*this, offset, a, b);
  }
  [[nodiscard]] Variable as_strided(const Shape& sizes, const Strides& strides,
                                    std::optional<int64_t> offset = {}) const {
    return gable::as_strided(*this, sizes, strides, offset);
  }

  /// The same value as a constant.
  [[nodiscard]] Variable detach() const { return Variable(value_); }

  /// Gradient of a leaf; undefined before the first backward. Throws Error for other variables.
  [[nodiscard]] Tensor<Compute<T>> grad() const {
    return leaf("grad").gradient.defined() ? Tensor<Compute<T>>(leaf("grad").gradient)
                                           : Tensor<Compute<T>>();
  }
  /// Replaces the gradient of a leaf; undefined clears it. Throws ShapeError, DeviceError.
  void set_grad(const Tensor<Compute<T>>& gradient) const {
    check(!gradient.defined() || gradient.shape() == shape(), "set_grad",
          "expected a gradient of shape ", shape(), ", got ", gradient.shape());
    if (gradient.defined()) detail::check_same_device("set_grad", value_, gradient);
    leaf("set_grad").gradient = gradient.any();
  }
  /// Drops the gradient of a leaf, or with `keep_memory` fills it with zeros.
  void zero_grad(bool keep_memory = false) const {
    AnyTensor& gradient = leaf("zero_grad").gradient;
    if (keep_memory && gradient.defined())
      gradient.zero_();
    else
      gradient = AnyTensor();
  }
  /// Calls `hook` with each gradient that reaches this leaf, before it is added.
  void set_grad_hook(std::function<void(AnyTensor&)> hook) const {
    leaf("set_grad_hook").hook = std::move(hook);
  }

  /// Adds d(this)/d(leaf) to every leaf's gradient. Without `dy` this must be one element.
  /// Saved tensors are freed on the way unless retain_graph.
  void backward(const std::optional<Tensor<T>>& dy = {},
                BackwardOptions options = {}) const requires FloatElement<T> {
    check<Error>(requires_grad(), "backward",
                 "expected a variable that depends on a leaf with requires_grad, got shape ",
                 shape());
    check(dy.has_value() || numel() == 1, "backward",
          "expected one element or an explicit gradient, got shape ", shape());
    const Tensor<T> gradient = dy ? *dy : ones_like(value_);
    check(gradient.shape() == shape(), "backward", "expected a gradient of shape ", shape(),
          ", got ", gradient.shape());
    detail::check_same_device("backward", value_, gradient);
    detail::run_backward(node_, gradient, options);
  }

 protected:
  void make_leaf() {
    check<TypeError>(FloatElement<T>, "requires_grad", "expected a floating-point dtype, got ",
                     dtype_of<T>);
    check(value_.defined(), "requires_grad", "expected a defined tensor, got an undefined one");
    node_ = std::make_shared<Leaf>(value_, dtype_of<Compute<T>>);
  }
  [[nodiscard]] Leaf& leaf(Where where) const {
    check<Error>(node_ != nullptr && node_->is_leaf(), where,
                 "expected a leaf that requires grad, got ",
                 node_ ? "the output of " : "a constant", node_ ? node_->name : "");
    return static_cast<Leaf&>(*node_);
  }

  Tensor<T> value_;
  NodePtr node_;
};

template <Element T>
[[nodiscard]] std::string to_string(const Variable<T>& x) {
  return to_string(x.value()) + (x.requires_grad() ? ", requires grad" : "");
}

/// The type-erased face of a Parameter: what optimizers, state dicts and clipping work on.
class AnyParameter {
 public:
  AnyParameter() = default;
  AnyParameter(AnyTensor value, AnyTensor master, std::shared_ptr<Leaf> leaf)
      : value_(std::move(value)), master_(std::move(master)), leaf_(std::move(leaf)) {}
  /// float or double; the tensor that the optimizer changes.
  [[nodiscard]] const AnyTensor& master() const { return master_; }
  /// The compute copy; the master itself for float and double.
  [[nodiscard]] const AnyTensor& value() const { return value_; }
  /// Of the master's dtype; undefined before the first backward.
  [[nodiscard]] AnyTensor& gradient() const { return leaf_->gradient; }
  [[nodiscard]] const Shape& shape() const { return master_.shape(); }
  /// Rounds the master into the compute copy after a change.
  void refresh() const {
    if (value_.dtype() != master_.dtype()) value_.copy_(master_);
  }
  /// Equal for handles of one parameter, distinct while both live.
  [[nodiscard]] const void* id() const { return leaf_.get(); }
  /// True if both are handles of one parameter (shared weights).
  friend bool operator==(const AnyParameter& a, const AnyParameter& b) {
    return a.leaf_ == b.leaf_;
  }

 private:
  AnyTensor value_;
  AnyTensor master_;
  std::shared_ptr<Leaf> leaf_;
};

/// A trained leaf: compute value T, float master and float gradient. For float and double the
/// master is the value itself.
template <FloatElement T>
class Parameter : public Variable<T> {
 public:
  Parameter() = default;
  /// Takes the initial value as the master; T's value is its rounding.
  explicit Parameter(Tensor<Compute<T>> master)
      : Variable<T>(master.template to<T>(), true), master_(std::move(master)) {}

  [[nodiscard]] const Tensor<Compute<T>>& master() const { return master_; }
  /// Copies `source` (any float dtype, same shape) into master and value.
  void assign(const AnyTensor& source, Where where = "assign") const {
    check(source.defined() && source.shape() == this->shape(), where, "expected shape ",
          this->shape(), ", got ", source.shape());
    master_.any().copy_(source, where);
    any().refresh();
  }
  /// The type-erased face; shares everything.
  [[nodiscard]] AnyParameter any() const {
    check(this->defined(), "parameter", "expected a defined parameter, got an undefined one");
    return {this->value_, master_, std::static_pointer_cast<Leaf>(this->node_)};
  }

 private:
  Tensor<Compute<T>> master_;
};

}  // namespace gable

#include "gable/autograd/apply.hpp"  // the members that record operators need it
