// SPDX-License-Identifier: Apache-2.0
// AnyTensor: views, copies and the rules for overlapping memory.
#include "gable/tensor/any_tensor.hpp"

#include "gable/memory/copy_stats.hpp"
#include "gable/tensor/backend.hpp"
#include "gable/tensor/kernels.hpp"

namespace gable {

AnyTensor::AnyTensor(Storage storage, const Layout& layout, DType dtype, Where where)
    : storage_(std::move(storage)), layout_(layout), dtype_(dtype), defined_(true) {
  const Extent e = layout.extent();
  check(layout.numel() == 0 || (e.low >= 0 && e.high < storage_elements()), where,
        "expected a view inside the storage of ", storage_elements(), " elements, got ", layout);
}

AnyTensor AnyTensor::empty(const Layout& layout, DType dtype, Device device) {
  check(layout.is_dense(), "empty", "expected a dense layout, got ", layout);
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(layout.numel(), size_of(dtype), &bytes), "empty",
        "expected fewer than 2^63 bytes, got shape ", layout.shape());
  return {Storage::allocate(bytes, device), layout.with_offset(0), dtype};
}

AnyTensor AnyTensor::zeros(const Layout& layout, DType dtype, Device device) {
  AnyTensor out = empty(layout, dtype, device);
  out.zero_();
  return out;
}

AnyView AnyTensor::write_view(Where where) const {
  check(defined_, where, "expected a defined tensor as output, got an undefined one");
  check(!layout_.overlaps_itself(), where, "expected an output whose elements do not overlap, got ",
        layout_);
  storage_.bump_version();
  return view();
}

AnyTensor AnyTensor::with(const Layout& layout) const {
  check(defined_, "view", "expected a defined tensor, got an undefined one");
  return {storage_, layout, dtype_, "view"};
}

AnyTensor AnyTensor::reshape(const Shape& shape) const {
  check(defined_, "reshape", "expected a defined tensor, got an undefined one");
  if (auto viewed = layout_.view(shape, "reshape")) return with(*viewed);
  return contiguous().with(Layout(layout_.resolve_shape(shape, "reshape")));
}

AnyTensor AnyTensor::contiguous(MemoryFormat format) const {
  check(defined_, "contiguous", "expected a defined tensor, got an undefined one");
  check(format == MemoryFormat::row_major || layout_.rank() >= 3, "contiguous",
        "expected rank >= 3 for channels_last, got shape ", shape());
  if (layout_.is_contiguous(format)) return *this;
  AnyTensor out = empty(Layout(shape(), format), dtype_, device());
  out.copy_(*this);
  return out;
}

AnyTensor AnyTensor::clone() const {
  check(defined_, "clone", "expected a defined tensor, got an undefined one");
  AnyTensor out = empty(layout_.like(), dtype_, device());
  out.copy_(*this);
  return out;
}

AnyTensor AnyTensor::to(DType dtype) const {
  if (dtype == dtype_) return *this;
  check(defined_, "to", "expected a defined tensor, got an undefined one");
  AnyTensor out = empty(layout_.like(), dtype, device());
  out.copy_(*this);
  return out;
}

AnyTensor AnyTensor::to(Device device) const {
  if (device == this->device()) return *this;
  check(defined_, "to", "expected a defined tensor, got an undefined one");
  AnyTensor out = empty(layout_.like(), dtype_, device);
  out.copy_(*this);
  return out;
}

void AnyTensor::copy_(const AnyTensor& source, Where where) const {
  check(defined_ && source.defined(), where, "expected defined tensors, got an undefined one");
  const Layout from = source.layout().expand(shape(), where);
  const AnyView dst = write_view(where);
  const AnyTensor src = detail::separate(source.with(from), *this);
  // A copy between devices runs on the one that is not the CPU.
  launch(device() == kCpu ? src.device() : device(),
         CopyArgs{dst, src.view(), false, device(), src.device()});
}

void AnyTensor::zero_() const {
  const AnyView out = write_view("zero_");
  visit_dtype(dtype_, [&]<class T>(TypeTag<T>) {
    launch(device(), FillArgs<T>{out.as<T>(), T{}});
  });
}

void AnyTensor::accumulate_(const AnyTensor& source, Where where) const {
  check(source.defined() && source.shape() == shape(), where, "expected a source of shape ",
        shape(), ", got ", source.shape());
  detail::check_same_device(where, *this, source);
  const AnyView dst = write_view(where);
  const AnyTensor src = detail::separate(source, *this);
  launch(device(), CopyArgs{dst, src.view(), true, device(), device()});
}

bool may_share_memory(const AnyTensor& a, const AnyTensor& b) {
  if (!a.defined() || !b.defined() || a.numel() == 0 || b.numel() == 0) return false;
  if (a.device() != b.device()) return false;
  auto range = [](const AnyTensor& t) {
    const Extent e = t.layout().extent();
    const int64_t size = size_of(t.dtype());
    const char* base = static_cast<const char*>(t.storage().data());
    return std::pair{base + e.low * size, base + (e.high + 1) * size};
  };
  const auto [a_low, a_high] = range(a);
  const auto [b_low, b_high] = range(b);
  return a_low < b_high && b_low < a_high;
}

namespace detail {

AnyTensor materialize(const AnyTensor& x, MemoryFormat format) {
  if (x.layout().is_contiguous(format)) return x;
  count_hidden_copy(x.layout().is_contiguous() || x.layout().is_channels_last());
  return x.contiguous(format);
}

AnyTensor separate(const AnyTensor& input, const AnyTensor& output) {
  if (!may_share_memory(input, output)) return input;
  const bool same_elements = input.data() == output.data() && input.dtype() == output.dtype() &&
                             input.shape() == output.shape() &&
                             input.layout().strides() == output.layout().strides();
  return same_elements ? input : input.clone();
}

void check_same_device(Where where, const AnyTensor& a, const AnyTensor& b) {
  check<DeviceError>(a.device() == b.device(), where, "expected tensors on one device, got ",
                     a.device(), " and ", b.device());
}

}  // namespace detail

}  // namespace gable
