// SPDX-License-Identifier: Apache-2.0
// Autocast: the setting and the cache of cast leaves, both by thread, and products in 16 bits.
#include "gable/ops/autocast.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "gable/autograd/apply.hpp"
#include "gable/memory/copy_stats.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/ops/cast.hpp"
#include "gable/ops/conv.hpp"
#include "gable/ops/matmul.hpp"

namespace gable::detail {

namespace {

struct Entry {
  AnyTensor leaf;  // kept, so that its address is not handed out again
  uint64_t version = 0;
  void* stream = nullptr;  // that the cast runs on
  AnyTensor cast;
};
using Key = std::tuple<int, const void*, DType>;  // level, data of the leaf, type of the cast

struct Cache {
  int level = 0;  // scopes with a cache of their own; inner ones begin empty
  std::map<Key, Entry> entries;
  size_t sweep_at = 64;
};

Cache& cache() {
  thread_local Cache instance;
  return instance;
}

AnyTensor cast_operand(const AnyTensor& x, DType to) {
  count_autocast();
  return x.to(to);
}

// Where the cache has this version of these elements, it has their cast.
AnyTensor cast_leaf(const AnyTensor& leaf, DType to) {
  Cache& c = cache();
  const Device device = leaf.device();
  void* stream = device == kCpu ? nullptr : cuda::current_stream(device).native;
  const uint64_t version = leaf.storage().version();
  const Key key{c.level, leaf.data(), to};
  const auto found = c.entries.find(key);
  if (found != c.entries.end()) {
    const Entry& e = found->second;
    if (e.leaf.storage() == leaf.storage() && e.leaf.layout() == leaf.layout() &&
        e.version == version && e.stream == stream)
      return e.cast;
  }
  const AnyTensor cast = cast_operand(leaf, to);
  c.entries.insert_or_assign(key, Entry{leaf, version, stream, cast});
  if (c.entries.size() > c.sweep_at) {  // a long scope over short-lived leaves
    std::erase_if(c.entries,
                  [](const auto& e) { return e.second.leaf.storage().use_count() == 1; });
    c.sweep_at = std::max<size_t>(64, 2 * c.entries.size());
  }
  return cast;
}

// The cache holds tensors and not graphs: each use records its own node. So a cast made under
// no_grad serves recording too, and backward may free one use's node before the next use.
template <Element U>
struct AutocastOp : CastOp<U, float> {
  bool leaf;
  explicit AutocastOp(bool is_leaf) : leaf(is_leaf) {}
  Tensor<U> forward(const Tensor<float>& x) {
    return Tensor<U>(leaf ? cast_leaf(x, dtype_of<U>) : cast_operand(x, dtype_of<U>));
  }
};

// An undefined operand stays so: the operator itself says what it expects.
template <Element U>
Tensor<U> lowered(const Tensor<float>& x) {
  return x.defined() ? Tensor<U>(cast_operand(x, dtype_of<U>)) : Tensor<U>();
}
template <Element U>
Variable<U> lowered(const Variable<float>& x) {
  if (!x.defined()) return {};
  return apply(AutocastOp<U>(x.requires_grad() && x.node()->is_leaf()), x);
}

}  // namespace

DType& autocast_dtype() noexcept {
  thread_local DType dtype = DType::float32;
  return dtype;
}

AutocastScope::AutocastScope(DType dtype, bool own_cache)
    : before_(autocast_dtype()), owner_(own_cache || cache().level == 0) {
  if (owner_) ++cache().level;
  autocast_dtype() = dtype;
}

AutocastScope::~AutocastScope() {
  autocast_dtype() = before_;
  if (!owner_) return;
  Cache& c = cache();
  std::erase_if(c.entries, [&](const auto& e) { return std::get<int>(e.first) == c.level; });
  --c.level;
}

template <class V, class F, std::same_as<V>... Vs>
V run_lowered(DType to, const F& f, const Vs&... xs) {
  if (to == DType::bfloat16) return cast<float>(f(TypeTag<bfloat16>{}, lowered<bfloat16>(xs)...));
  return cast<float>(f(TypeTag<half>{}, lowered<half>(xs)...));
}

#define GABLE_LOWERED(V, F) template V run_lowered(DType, const F&, const V&, const V&);
#define GABLE_LOWERED_BIASED(V, F) \
  GABLE_LOWERED(V, F)              \
  template V run_lowered(DType, const F&, const V&, const V&, const V&);
#define GABLE_LOWERED_ALL(V)          \
  GABLE_LOWERED(V, RunMatmul)         \
  GABLE_LOWERED_BIASED(V, RunLinear)  \
  GABLE_LOWERED_BIASED(V, RunConv<1>) \
  GABLE_LOWERED_BIASED(V, RunConv<2>) \
  GABLE_LOWERED_BIASED(V, RunConvTranspose)
GABLE_LOWERED_ALL(Tensor<float>)
GABLE_LOWERED_ALL(Variable<float>)

}  // namespace gable::detail
