// SPDX-License-Identifier: Apache-2.0
// The backward engine: visits nodes by falling id, each once, after all its users.
#include <algorithm>
#include <atomic>
#include <queue>
#include <unordered_map>

#include "gable/autograd/node.hpp"
#include "gable/core/error.hpp"
#include "gable/ops/autocast.hpp"

namespace gable {

namespace {

std::atomic<uint64_t> next_id{1};

// A gradient on its way, and whether this engine made its memory and may add to it in place.
struct Pending {
  AnyTensor value;
  bool owned = false;
};

void add_gradient(Pending& slot, const AnyTensor& gradient) {
  if (!slot.value.defined()) {
    slot = {gradient, false};
    return;
  }
  if (!slot.owned) {
    // Sum in the wider of the two types.
    const DType wide = size_of(gradient.dtype()) > size_of(slot.value.dtype()) ? gradient.dtype()
                                                                               : slot.value.dtype();
    AnyTensor sum = AnyTensor::empty(slot.value.layout().like(), wide, slot.value.device());
    sum.copy_(slot.value);
    slot = {sum, true};
  }
  slot.value.accumulate_(gradient, "backward");
}

}  // namespace

Node::Node(const char* n, Shape s, DType t, Device d)
    : id(next_id.fetch_add(1)), name(n), shape(s), dtype(t), device(d) {}

// Long chains would recurse once a node; a work list frees them one by one.
Node::~Node() {
  std::vector<NodePtr> work = std::move(inputs);
  while (!work.empty()) {
    NodePtr node = std::move(work.back());
    work.pop_back();
    if (node && node.use_count() == 1) {
      for (NodePtr& input : node->inputs) work.push_back(std::move(input));
      node->inputs.clear();
    }
  }
}

std::vector<AnyTensor> Leaf::backward(const AnyTensor& dy) {
  AnyTensor arriving = dy;
  if (hook) {
    hook(arriving);
    check(arriving.defined() && arriving.shape() == shape, "backward",
          "expected a gradient hook to keep shape ", shape, ", got ", arriving.shape());
  }
  if (gradient.defined()) {
    gradient.accumulate_(arriving, "backward");
    return {};
  }
  gradient = AnyTensor::empty(arriving.layout().like(), gradient_dtype_, device);
  gradient.copy_(arriving);
  return {};
}

namespace detail {

bool& grad_mode() noexcept {
  thread_local bool enabled = true;
  return enabled;
}

void run_backward(const NodePtr& root, const AnyTensor& dy, const BackwardOptions& options) {
  const NoGrad no_grad;
  const AutocastScope no_autocast(DType::float32);  // the same inside and outside of a scope
  std::unordered_map<const Node*, Pending> pending;
  auto younger = [](const NodePtr& a, const NodePtr& b) { return a->id < b->id; };
  std::priority_queue<NodePtr, std::vector<NodePtr>, decltype(younger)> queue(younger);
  pending[root.get()] = {dy, false};
  queue.push(root);
  while (!queue.empty()) {
    const NodePtr node = queue.top();
    queue.pop();
    AnyTensor gradient = std::move(pending.at(node.get()).value);
    pending.erase(node.get());
    if (!node->is_leaf()) gradient = gradient.to(node->dtype);
    const std::vector<AnyTensor> gradients = node->backward(gradient);
    gradient = AnyTensor();
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const NodePtr& input = node->inputs[i];
      if (!input || i >= gradients.size() || !gradients[i].defined()) continue;
      check(gradients[i].shape() == input->shape, node->name, "expected a gradient of shape ",
            input->shape, " for input ", i, ", got ", gradients[i].shape());
      auto [slot, is_new] = pending.try_emplace(input.get());
      add_gradient(slot->second, gradients[i]);
      if (is_new) queue.push(input);
    }
    if (!options.retain_graph && !node->is_leaf()) node->release();
  }
}

}  // namespace detail

}  // namespace gable
