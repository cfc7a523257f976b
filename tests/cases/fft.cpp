// SPDX-License-Identifier: Apache-2.0
// rfft, irfft, fft, ifft.
#include "gable/ops/fft.hpp"

#include <type_traits>

#include "fft_reference.hpp"
#include "op_case.hpp"

namespace gable::cases {
namespace {

struct Setting {
  const char* name;
  Shape real;  // of the side without a last 2
  int64_t dim;
  std::optional<int64_t> n;
  fft::Norm norm = fft::Norm::backward;
};
const std::vector<Setting> kSettings = {
    {"even", {3, 8}, -1, {}},
    {"odd", {3, 7}, -1, 7, fft::Norm::ortho},
    {"first", {6, 5}, 0, {}, fft::Norm::forward},
    {"middle", {2, 12, 3}, 1, {}},
    {"cut", {2, 9}, 1, 5},
    {"filled", {2, 5}, 1, 10, fft::Norm::ortho},
    {"one", {3, 2}, 1, 1},
    {"empty", {0, 4}, 1, {}},
};
const std::vector<Setting> kLarge = {{"large_lines", {128, 1024}, 1, {}},
                                     {"large_columns", {500, 64}, 0, {}}};

// The cases' functions are compiled for the 16-bit types too, for which they are not run.
template <class F>
auto floats(F f) {
  return [f](const auto& in) {
    using X = std::decay_t<decltype(in[0])>;
    if constexpr (fft::Transformable<X>)
      return f(in[0]);
    else
      return X(in[0]);
  };
}

template <class F>
OpCase make(const char* function, FftKind kind, bool inverse, const Setting& s, F f) {
  Shape shape = s.real;
  if (kind != FftKind::real_to_complex) shape.push_back(2);
  OpCase c = differentiable(concat(function, "/", s.name), {{shape}},
                            floats([f, s](const auto& x) { return f(x, s.n, s.dim, s.norm); }),
                            [=](const std::vector<Tensor<double>>& in) {
                              return testing_fft::dft(kind, inverse, in[0], s.n, s.dim, s.norm);
                            });
  c.small_floats = false;
  c.float32 = {3e-5, 1e-5};
  c.float64 = {1e-12, 1e-12};
  return c;
}

std::vector<OpCase> all_four(const Setting& s) {
  return {make("rfft", FftKind::real_to_complex, false, s,
               [](const auto& x, auto... rest) { return fft::rfft(x, rest...); }),
          make("irfft", FftKind::complex_to_real, true, s,
               [](const auto& x, auto... rest) { return fft::irfft(x, rest...); }),
          make("fft", FftKind::complex, false, s,
               [](const auto& x, auto... rest) { return fft::fft(x, rest...); }),
          make("ifft", FftKind::complex, true, s,
               [](const auto& x, auto... rest) { return fft::ifft(x, rest...); })};
}

const Register register_fft([](const Register::Add& add) {
  for (const Setting& s : kSettings)
    for (OpCase& c : all_four(s)) add(std::move(c));
  for (const Setting& s : kLarge)
    for (OpCase& c : all_four(s)) {
      c.gradient = false;
      c.benchmark = true;
      c.float32 = {3e-4, 1e-5};
      c.float64 = {1e-11, 1e-12};
      add(std::move(c));
    }
});

}  // namespace
}  // namespace gable::cases
