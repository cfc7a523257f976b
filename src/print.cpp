// SPDX-License-Identifier: Apache-2.0
// to_string of tensors, as NumPy prints them.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <vector>

#include "gable/tensor/tensor.hpp"

namespace gable {

namespace {

constexpr int64_t kSummaryThreshold = 1000;  // elements
constexpr int64_t kEdgeItems = 3;
constexpr int kPrecision = 4;
constexpr size_t kLineWidth = 80;

enum class Style { whole, fixed, scientific };

std::string real_text(double v, Style style) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[400];  // fixed notation is used below 1e8 only
  const auto format =
      style == Style::scientific ? std::chars_format::scientific : std::chars_format::fixed;
  const auto r = std::to_chars(buffer, buffer + sizeof(buffer), v, format,
                               style == Style::whole ? 0 : kPrecision);
  return std::string(buffer, r.ptr) + (style == Style::whole ? "." : "");
}

// PyTorch's rule: whole numbers stay short; a wide range of magnitudes needs exponents.
Style style_of(const std::vector<double>& values) {
  double least = INFINITY;
  double greatest = 0;
  bool whole = true;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    whole &= v == std::trunc(v);
    if (v == 0) continue;
    least = std::min(least, std::abs(v));
    greatest = std::max(greatest, std::abs(v));
  }
  if (greatest >= 1e8 || greatest > 1000 * 1000 * least) return Style::scientific;
  if (whole) return Style::whole;
  return greatest > 1000 * least || least < 1e-4 ? Style::scientific : Style::fixed;
}

template <class T>
class Printer {
 public:
  explicit Printer(const Tensor<T>& x) : x_(x), summarise_(x.numel() > kSummaryThreshold) {
    if constexpr (FloatElement<T>) {
      std::vector<double> values;
      visit(0, x.data(), [&](T v) { values.push_back(convert<double>(v)); });
      style_ = style_of(values);
    }
    visit(0, x.data(), [&](T v) { width_ = std::max(width_, text(v).size()); });
  }

  std::string print() const {
    std::string out;
    print(out, 0, x_.data());
    return out;
  }

 private:
  [[nodiscard]] bool shortened(int d) const { return summarise_ && x_.shape()[d] > 2 * kEdgeItems; }

  // Calls f(index, true) for the indices of dimension d that are shown; f(-1) for the dots.
  template <class F>
  void each_index(int d, F&& f) const {
    const int64_t n = x_.shape()[d];
    for (int64_t i = 0; i < n; ++i) {
      if (shortened(d) && i == kEdgeItems) {
        f(-1);
        i = n - kEdgeItems;
      }
      f(i);
    }
  }

  template <class F>
  void visit(int d, const T* at, F&& f) const {
    if (x_.numel() == 0) return;
    if (d == x_.rank()) {
      f(*at);
      return;
    }
    each_index(d, [&](int64_t i) {
      if (i >= 0) visit(d + 1, at + i * x_.strides()[d], f);
    });
  }

  [[nodiscard]] std::string text(T v) const {
    if constexpr (std::is_same_v<T, bool>)
      return v ? "true" : "false";
    else if constexpr (FloatElement<T>)
      return real_text(convert<double>(v), style_);
    else
      return concat(static_cast<int64_t>(v));
  }

  void print(std::string& out, int d, const T* at) const {
    if (d == x_.rank()) {
      const std::string value = text(*at);
      out.append(x_.rank() == 0 ? 0 : width_ - value.size(), ' ') += value;
      return;
    }
    out += '[';
    const auto indent = static_cast<size_t>(d) + 1;
    const bool row = d + 1 == x_.rank();
    size_t column = indent;
    bool first = true;
    each_index(d, [&](int64_t i) {
      if (!first && row) {
        out += ',';
        if (column + width_ + 2 > kLineWidth) {
          out.append(1, '\n').append(indent, ' ');
          column = indent;
        } else {
          out += ' ';
          ++column;
        }
      } else if (!first) {
        // A blank line a dimension between blocks, as NumPy.
        out.append(",").append(static_cast<size_t>(x_.rank() - d - 1), '\n').append(indent, ' ');
      }
      first = false;
      column += (i < 0 ? 3 : width_) + 1;
      if (i < 0)
        out += "...";
      else
        print(out, d + 1, at + i * x_.strides()[d]);
    });
    out += ']';
  }

  const Tensor<T>& x_;
  bool summarise_;
  Style style_ = Style::fixed;
  size_t width_ = 0;
};

}  // namespace

std::string to_string(const AnyTensor& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  const std::string values = visit_dtype(tensor.dtype(), [&]<class T>(TypeTag<T>) -> std::string {
    const Tensor<T> x = tensor.to(kCpu).as<T>();
    return x.numel() == 0 ? "[]" : Printer<T>(x).print();
  });
  return concat(values, "\nshape ", tensor.shape(), ", ", tensor.dtype(), ", ", tensor.device());
}

}  // namespace gable
