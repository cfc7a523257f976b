// SPDX-License-Identifier: Apache-2.0
// Copies to and from stand-ins.
#include "runtime/staging.hpp"

#include "gable/tensor/backend.hpp"
#include "gable/tensor/kernels.hpp"

namespace gable::cuda {

namespace {

bool lies_as(const Layout& layout, const Layout& order) {
  for (int d = 0; d < order.rank(); ++d)
    if (order.shape()[d] > 1 && layout.strides()[d] != order.strides()[d]) return false;
  return true;
}

}  // namespace

AnyView Staging::place(const AnyView& view, const Layout& order, bool changes) {
  if (lies_as(view.layout, order)) return view;
  copies_.push_back(Storage::allocate(view.bytes(), stream_.device));
  const AnyView copy{copies_.back().data(), order.with_offset(0), view.dtype};
  run(CopyArgs{copy, view, false, stream_.device, stream_.device}, stream_);
  if (changes) changed_.emplace_back(view, copy);
  return copy;
}

void Staging::write_back() const {
  for (const auto& [original, copy] : changed_)
    run(CopyArgs{original, copy, false, stream_.device, stream_.device}, stream_);
}

}  // namespace gable::cuda
