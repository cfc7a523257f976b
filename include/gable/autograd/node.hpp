// SPDX-License-Identifier: Apache-2.0
// Node: one recorded operator of the backward graph, type-erased over AnyTensor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gable/tensor/any_tensor.hpp"

namespace gable {

class Node;
using NodePtr = std::shared_ptr<Node>;

/// Produces the gradients of its inputs from the gradient of its one differentiable output.
/// `inputs[i]` is null where input i needs no gradient. Ids grow with creation, so that every
/// user of a node has a greater id: backward visits nodes by falling id.
class Node {
 public:
  Node(const char* name, Shape shape, DType dtype, Device device);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// One AnyTensor an input; undefined means no gradient flows there.
  virtual std::vector<AnyTensor> backward(const AnyTensor& dy) = 0;
  /// Frees what forward saved; backward() cannot be called again.
  virtual void release() = 0;
  [[nodiscard]] virtual bool is_leaf() const { return false; }

  const uint64_t id;
  const char* const name;
  const Shape shape;  ///< of the output, hence of dy
  const DType dtype;  ///< of dy, as a rule the output's; an arriving gradient is converted to it
  const Device device;
  std::vector<NodePtr> inputs;
};

/// A tensor that collects its gradient: a parameter or an input that asked for it.
class Leaf final : public Node {
 public:
  /// Shape, dtype and device of the tensor; its gradient is kept as `gradient_dtype`.
  Leaf(const AnyTensor& tensor, DType gradient_dtype)
      : Node("leaf", tensor.shape(), tensor.dtype(), tensor.device()),
        gradient_dtype_(gradient_dtype) {}
  std::vector<AnyTensor> backward(const AnyTensor& dy) override;
  void release() override {}
  [[nodiscard]] bool is_leaf() const override { return true; }

  AnyTensor gradient;                    ///< undefined until the first backward
  std::function<void(AnyTensor&)> hook;  ///< called with each arriving gradient, may replace it

 private:
  DType gradient_dtype_;
};

struct BackwardOptions {
  bool retain_graph = false;  ///< keep saved tensors for another backward
};

namespace detail {
/// Runs backward from `root` with the gradient `dy` of its output.
void run_backward(const NodePtr& root, const AnyTensor& dy, const BackwardOptions& options);
bool& grad_mode() noexcept;  // thread-local
}  // namespace detail

/// True unless inside NoGrad on this thread.
[[nodiscard]] inline bool grad_enabled() { return detail::grad_mode(); }

/// No operator is recorded on this thread during the scope.
class NoGrad {
 public:
  explicit NoGrad(bool disable = true) : previous_(detail::grad_mode()) {
    if (disable) detail::grad_mode() = false;
  }
  ~NoGrad() { detail::grad_mode() = previous_; }
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

/// Recording again inside NoGrad.
class EnableGrad {
 public:
  EnableGrad() : previous_(detail::grad_mode()) { detail::grad_mode() = true; }
  ~EnableGrad() { detail::grad_mode() = previous_; }
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool previous_;
};

}  // namespace gable
