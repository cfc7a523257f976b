// SPDX-License-Identifier: Apache-2.0
// map: a user's function over the elements of 1 to 4 tensors, threaded and vectorizable.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include "gable/ops/op.hpp"
#include "gable/tensor/strided_loop.hpp"

namespace gable {

namespace detail {

template <class F, class... Ts>
using MapResult = std::decay_t<std::invoke_result_t<const F&, Compute<Ts>...>>;

// What map() returns unless told: the first input's type where f computes in its compute type
// (so half maps to half), else what f returns.
template <class F, class First, class... Rest>
using MapOutput = std::conditional_t<std::same_as<MapResult<F, First, Rest...>, Compute<First>>,
                                     First, MapResult<F, First, Rest...>>;

// Tells the observer, as launch() does; a user's function has no kernel in the library.
class MapScope {
 public:
  explicit MapScope(const Cost& cost) : observer_(current_observer()) {
    if (observer_ != nullptr) observer_->begin("map", kCpu, cost);
  }
  ~MapScope() {
    if (observer_ != nullptr) observer_->end();
  }
  MapScope(const MapScope&) = delete;
  MapScope& operator=(const MapScope&) = delete;

 private:
  KernelObserver* observer_;
};

inline constexpr int64_t kMapTile = 256;

// `count` elements as dense compute values: in place where they are, else gathered in `tile`.
template <class T>
const Compute<T>* map_input(const T* in, int64_t stride, int64_t count, Compute<T>* tile) {
  if constexpr (std::same_as<T, Compute<T>>) {
    if (stride == 1) return in;
  }
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) tile[i] = convert<Compute<T>>(in[i]);
  } else {
    for (int64_t i = 0; i < count; ++i) tile[i] = convert<Compute<T>>(in[i * stride]);
  }
  return tile;
}

template <class F, class Out, class... Ts, size_t... K>
void map_rows(const F& f, const TensorView<Out>& out, std::index_sequence<K...>,
              const TensorView<const Ts>&... in) {
  constexpr int kOperands = 1 + static_cast<int>(sizeof...(Ts));
  const StridedLoop<kOperands> loop({&out.layout, &in.layout...});
  const std::array<int64_t, kOperands> strides = loop.row_strides();
  const std::tuple<const Ts*...> data{in.data...};
  loop.parallel(kElementwiseGrain / 8, [&](const auto& at, int64_t n) {
    std::tuple<std::array<Compute<Ts>, kMapTile>...> tiles;
    for (int64_t first = 0; first < n; first += kMapTile) {
      const int64_t count = std::min(kMapTile, n - first);
      const std::tuple<const Compute<Ts>*...> x{
          map_input(std::get<K>(data) + at[K + 1] + first * strides[K + 1], strides[K + 1], count,
                    std::get<K>(tiles).data())...};
      Out* y = out.data + at[0] + first * strides[0];
      if (strides[0] == 1) {
#pragma GCC ivdep
        for (int64_t i = 0; i < count; ++i) y[i] = convert<Out>(f(std::get<K>(x)[i]...));
      } else {
        for (int64_t i = 0; i < count; ++i)
          y[i * strides[0]] = convert<Out>(f(std::get<K>(x)[i]...));
      }
    }
  });
}

template <class F, Element First, Element... Rest>
Shape map_shape(const F&, const Tensor<First>& first, const Tensor<Rest>&... rest) {
  static_assert(sizeof...(Rest) < 4, "map takes 1 to 4 tensors");
  check(first.defined() && (rest.defined() && ...), "map",
        "expected defined tensors, got an undefined one");
  (check_same_device("map", first, rest), ...);
  check<DeviceError>(first.device() == kCpu, "map", "expected CPU tensors, got ", first.device(),
                     "; to run a function on CUDA, call map from a .cu file");
  Shape shape = first.shape();
  ((shape = broadcast_shapes(shape, rest.shape(), "map")), ...);
  return shape;
}

}  // namespace detail

/// out = f(inputs...) element by element; see map(). `out` has the broadcast shape, any strides;
/// where it overlaps an input partially, the input is cloned first.
template <class F, Element Out, Element... Ts>
const Tensor<Out>& map_out(const Tensor<Out>& out, const F& f, const Tensor<Ts>&... inputs) {
  const Shape shape = detail::map_shape(f, inputs...);
  check(out.defined() && out.shape() == shape, "map", "expected an output of shape ", shape,
        ", got ", out.shape());
  check<DeviceError>(out.device() == kCpu, "map", "expected a CPU output, got ", out.device());
  const TensorView<Out> target = out.write_view("map");
  const std::tuple<Tensor<Ts>...> sources{
      Tensor<Ts>(detail::separate(inputs.expand(shape), out))...};
  const detail::MapScope scope(Cost{.bytes_read = ((inputs.numel() * size_of(dtype_of<Ts>)) + ...),
                                    .bytes_written = target.bytes()});
  std::apply(
      [&](const auto&... x) {
        detail::map_rows(f, target, std::index_sequence_for<Ts...>{}, x.view()...);
      },
      sources);
  return out;
}

/// f over the elements of 1 to 4 tensors, which are broadcast:
///   Tensor<float> y = map([](float a, float b) { return a * a + b; }, x, bias);
/// f gets half and bfloat16 as float. The result has the first tensor's type where f returns its
/// compute type, else the type that f returns; map<U>(f, ...) makes it U. f must be callable from
/// several threads at once, in any order; loops over dense rows vectorize if f has no branches
/// and is visible to the compiler. No gradient. Throws ShapeError, DeviceError, and what f throws
/// (the output is then unspecified).
template <Element Out, class F, Element First, Element... Rest>
[[nodiscard]] Tensor<Out> map(const F& f, const Tensor<First>& first, const Tensor<Rest>&... rest) {
  const Shape shape = detail::map_shape(f, first, rest...);
  const Layout layout = first.shape() == shape ? first.layout().like() : Layout(shape);
  Tensor<Out> out(AnyTensor::empty(layout, dtype_of<Out>));
  map_out(out, f, first, rest...);
  return out;
}
template <class F, Element First, Element... Rest>
requires(!Element<F>)
    [[nodiscard]] auto map(const F& f, const Tensor<First>& first, const Tensor<Rest>&... rest) {
  return map<detail::MapOutput<F, First, Rest...>>(f, first, rest...);
}

}  // namespace gable
