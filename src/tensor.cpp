// SPDX-License-Identifier: Apache-2.0
// Tensor<T>: the members that need kernels, and creation, instantiated for the eight types.
#include "gable/tensor/tensor.hpp"

#include <algorithm>
#include <cmath>

namespace gable {

template <Element T>
Tensor<T>::Tensor(AnyTensor any, Where where) : any_(std::move(any)) {
  check<TypeError>(!any_.defined() || any_.dtype() == dtype_of<T>, where, "expected dtype ",
                   dtype_of<T>, ", got ", any_.dtype());
}

template <Element T>
Tensor<T> Tensor<T>::view(const Shape& shape) const {
  const auto viewed = layout().view(shape);
  check(viewed.has_value(), "view", "expected strides that can express ", shape, ", got ", layout(),
        "; use reshape() to allow a copy");
  return with(*viewed);
}

template <Element T>
T& Tensor<T>::element(std::span<const int64_t> index) const {
  check(defined(), "index", "expected a defined tensor, got an undefined one");
  check<DeviceError>(device() == kCpu, "index", "expected a tensor on cpu, got ", device(),
                     "; use .to(kCpu) first");
  const int64_t at = layout().offset_of(index);
  return *(data() + (at - layout().offset()));
}

template <Element T>
T Tensor<T>::item() const {
  check(defined() && numel() == 1, "item", "expected one element, got shape ", shape());
  return *to(kCpu).data();
}

template <Element T>
std::vector<T> Tensor<T>::to_vector() const {
  const Tensor dense = to(kCpu).contiguous();
  return std::vector<T>(dense.data(), dense.data() + dense.numel());
}

template <Element T>
const Tensor<T>& Tensor<T>::fill_(T value) const {
  launch(device(), FillArgs<T>{write_view("fill_"), value});
  return *this;
}

template <Element T>
Tensor<T> arange(Compute<T> start, Compute<T> stop, Compute<T> step, Device device) {
  int64_t count = 0;
  if constexpr (std::is_integral_v<Compute<T>>) {
    const auto s = static_cast<int64_t>(step);
    check<TypeError>(s != 0, "arange", "expected a step other than 0, got 0");
    const auto low = static_cast<int64_t>(s > 0 ? start : stop);
    const auto high = static_cast<int64_t>(s > 0 ? stop : start);
    if (low < high) {  // distances of 64-bit integers need 64 unsigned bits
      const uint64_t distance = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
      const uint64_t stride =
          s > 0 ? static_cast<uint64_t>(s) : uint64_t{0} - static_cast<uint64_t>(s);
      const uint64_t n = (distance - 1) / stride + 1;
      check<ShapeError>(n < (uint64_t{1} << 63), "arange",
                        "expected fewer than 2^63 elements, got ", n);
      count = static_cast<int64_t>(n);
    }
  } else {
    check<TypeError>(
        std::isfinite(start) && std::isfinite(stop) && std::isfinite(step) && step != 0, "arange",
        "expected finite bounds and a step other than 0, got ", static_cast<double>(start), ", ",
        static_cast<double>(stop), ", ", static_cast<double>(step));
    const double n = std::ceil((static_cast<double>(stop) - static_cast<double>(start)) /
                               static_cast<double>(step));
    check<ShapeError>(n < 9e18, "arange", "expected fewer than 2^63 elements, got ", n);
    count = n > 0 ? static_cast<int64_t>(n) : 0;
  }
  Tensor<T> out({count}, device);
  RangeArgs<T> args{out.write_view("arange"), static_cast<double>(start), static_cast<double>(step),
                    0, 0};
  if constexpr (std::is_integral_v<Compute<T>>) {  // a float may be out of int64's range
    args.int_start = static_cast<int64_t>(start);
    args.int_step = static_cast<int64_t>(step);
  }
  launch(device, args);
  return out;
}

template <FloatElement T>
Tensor<T> linspace(double start, double stop, int64_t count, Device device) {
  check<ShapeError>(count >= 0, "linspace", "expected a count >= 0, got ", count);
  check<TypeError>(std::isfinite(start) && std::isfinite(stop), "linspace",
                   "expected finite bounds, got ", start, " and ", stop);
  Tensor<T> out({count}, device);
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0.0;
  launch(device, RangeArgs<T>{out.write_view("linspace"), start, step, 0, 0});
  if (count > 1) out.select(0, -1).fill_(convert<T>(stop));  // start + n*step may miss it
  return out;
}

template <Element T>
Tensor<T> eye(int64_t n, std::optional<int64_t> m, Device device) {
  Tensor<T> out = zeros<T>({n, m.value_or(n)}, {.device = device});
  out.diagonal().fill_(convert<T>(1));
  return out;
}

template <Element T>
Tensor<T> from_data(std::span<const T> values, const Shape& shape, Device device) {
  const Layout layout(shape);
  check(layout.numel() == static_cast<int64_t>(values.size()), "from_data", "expected ",
        layout.numel(), " values for shape ", shape, ", got ", values.size());
  Tensor<T> out(shape);
  std::copy(values.begin(), values.end(), out.data());
  return out.to(device);
}

template <Element T>
Tensor<T> from_blob(T* data, const Shape& shape, std::function<void(void*)> release,
                    Device device) {
  const Layout layout(shape);
  check<TypeError>(data != nullptr || layout.numel() == 0, "from_blob",
                   "expected an address for shape ", shape, ", got null");
  int64_t bytes = 0;
  check(!__builtin_mul_overflow(layout.numel(), static_cast<int64_t>(sizeof(T)), &bytes),
        "from_blob", "expected fewer than 2^63 bytes, got shape ", shape);
  return Tensor<T>(AnyTensor(Storage::borrow(data, bytes, device, std::move(release)), layout,
                             dtype_of<T>, "from_blob"));
}

#define GABLE_INSTANTIATE(T)                                                 \
  template class Tensor<T>;                                                  \
  template Tensor<T> arange<T>(Compute<T>, Compute<T>, Compute<T>, Device);  \
  template Tensor<T> eye<T>(int64_t, std::optional<int64_t>, Device);        \
  template Tensor<T> from_data<T>(std::span<const T>, const Shape&, Device); \
  template Tensor<T> from_blob<T>(T*, const Shape&, std::function<void(void*)>, Device);
GABLE_INSTANTIATE(float)
GABLE_INSTANTIATE(double)
GABLE_INSTANTIATE(half)
GABLE_INSTANTIATE(bfloat16)
GABLE_INSTANTIATE(int32_t)
GABLE_INSTANTIATE(int64_t)
GABLE_INSTANTIATE(uint8_t)
GABLE_INSTANTIATE(bool)
template Tensor<float> linspace<float>(double, double, int64_t, Device);
template Tensor<double> linspace<double>(double, double, int64_t, Device);
template Tensor<half> linspace<half>(double, double, int64_t, Device);
template Tensor<bfloat16> linspace<bfloat16>(double, double, int64_t, Device);

}  // namespace gable
