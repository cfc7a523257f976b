// SPDX-License-Identifier: Apache-2.0
// Safetensors header: a SAX parse into entries (no recursion, no document in memory, duplicate
// keys seen), then the checks of the byte ranges.
#include "safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

namespace gable::io {

namespace {

using Json = nlohmann::json;

struct Name {
  std::string_view text;
  DType dtype;
};
constexpr std::array<Name, 8> kNames = {{{"F32", DType::float32},
                                         {"F64", DType::float64},
                                         {"F16", DType::float16},
                                         {"BF16", DType::bfloat16},
                                         {"I32", DType::int32},
                                         {"I64", DType::int64},
                                         {"U8", DType::uint8},
                                         {"BOOL", DType::boolean}}};

// Accepts exactly {NAME: {"dtype": TEXT, "shape": [...], "data_offsets": [b, e]}, ...,
// "__metadata__": {TEXT: TEXT}}; every callback that does not fit throws.
class Reader final : public Json::json_sax_t {
 public:
  explicit Reader(std::string_view file) : file_(file) {}
  Header header;

  bool start_object(size_t) override {
    if (depth_ == 2 || in_list_) refuse("a value, got an object");
    ++depth_;
    if (depth_ == 2) begin_entry();
    return true;
  }
  bool end_object() override {
    if (depth_ == 2 && !in_metadata_) finish_entry();
    --depth_;
    in_metadata_ = false;
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || (field_ != "shape" && field_ != "data_offsets"))
      refuse("no list here, got a list");
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }
  bool key(std::string& text) override {
    if (depth_ == 1) {
      name_ = text;
      if (!names_.insert(text).second) refuse("each name once, got it twice");
      return true;
    }
    field_ = text;
    if (!fields_.insert(text).second) refuse(concat("each field once, got \"", text, "\" twice"));
    if (!in_metadata_ && text != "dtype" && text != "shape" && text != "data_offsets")
      refuse(concat("fields dtype, shape, data_offsets, got \"", text, "\""));
    return true;
  }
  bool string(std::string& text) override {
    if (depth_ == 2 && in_metadata_) {
      header.metadata.emplace(field_, text);
    } else if (depth_ == 2 && field_ == "dtype" && !in_list_) {
      const auto* known =
          std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return n.text == text; });
      if (known == kNames.end())
        refuse(concat("a dtype of F64, F32, F16, BF16, I64, I32, U8, BOOL, got \"", text, "\""));
      entry_.dtype = known->dtype;
    } else {
      refuse(concat("no text here, got \"", text, "\""));
    }
    return true;
  }
  bool number_unsigned(uint64_t value) override {
    if (!in_list_) refuse(concat("no number here, got ", value));
    std::vector<uint64_t>& list = field_ == "shape" ? sizes_ : offsets_;
    if (list.size() >= static_cast<size_t>(kMaxRank))
      refuse(concat("at most ", kMaxRank, " values in ", field_, ", got more"));
    list.push_back(value);
    return true;
  }
  bool number_integer(int64_t value) override {
    refuse(concat("values >= 0 in ", field_, ", got ", value));
  }
  bool number_float(double, const std::string& text) override {
    refuse(concat("whole numbers below 2^64, got ", text));
  }
  bool null() override { refuse("a value, got null"); }
  bool boolean(bool) override { refuse("a value, got a bool"); }
  bool binary(Json::binary_t&) override { refuse("a value, got binary"); }
  bool parse_error(size_t position, const std::string&, const Json::exception& e) override {
    std::string_view what = e.what();  // "[json.exception.parse_error.101] parse error at ...: why"
    if (const size_t colon = what.find(": "); colon != std::string_view::npos)
      what.remove_prefix(colon + 2);
    fail<FormatError>("safetensors", "expected a JSON header, got ", file_, " with ", what,
                      " (byte ", 8 + (position > 0 ? position - 1 : 0), ")");
  }

 private:
  [[noreturn]] void refuse(const std::string& text) const {
    const std::string where = name_.empty() ? "the header" : concat("tensor \"", name_, "\"");
    fail<FormatError>("safetensors", where, ": expected ", text, " (", file_, ", header)");
  }
  void begin_entry() {
    fields_.clear();
    field_.clear();
    in_metadata_ = name_ == "__metadata__";
    entry_ = {};
    sizes_.clear();
    offsets_.clear();
  }
  void finish_entry() {
    for (const char* field : {"dtype", "shape", "data_offsets"})
      if (!fields_.contains(field)) refuse(concat("a field \"", field, "\", got none"));
    if (offsets_.size() != 2) refuse(concat("2 data_offsets, got ", offsets_.size()));
    entry_.name = name_;
    entry_.begin = offsets_[0];
    entry_.end = offsets_[1];
    if (entry_.begin > entry_.end)
      refuse(concat("data_offsets in order, got [", entry_.begin, ", ", entry_.end, "]"));
    uint64_t bytes = static_cast<uint64_t>(size_of(entry_.dtype));
    bool overflow = false;
    for (uint64_t n : sizes_) {
      overflow |= n > static_cast<uint64_t>(INT64_MAX);
      overflow |= __builtin_mul_overflow(bytes, n, &bytes);
      entry_.shape.push_back(static_cast<int64_t>(n));
    }
    if (overflow) refuse(concat("a shape of fewer than 2^63 bytes, got ", entry_.shape));
    if (bytes != entry_.end - entry_.begin)
      refuse(concat(bytes, " bytes for ", entry_.dtype, " ", entry_.shape, ", got ",
                    entry_.end - entry_.begin, " from data_offsets [", entry_.begin, ", ",
                    entry_.end, "]"));
    header.entries.push_back(std::move(entry_));
  }

  std::string_view file_;
  int depth_ = 0;
  bool in_list_ = false;
  bool in_metadata_ = false;
  std::string name_;
  std::string field_;
  HeaderEntry entry_;
  std::vector<uint64_t> sizes_;
  std::vector<uint64_t> offsets_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> fields_;
};

// The ranges must cover the data exactly: no byte twice, none left over.
void check_ranges(const Header& header, uint64_t data_start, uint64_t data_bytes,
                  std::string_view file) {
  uint64_t at = 0;
  const HeaderEntry* previous = nullptr;
  for (const HeaderEntry& e : header.entries) {
    check<FormatError>(e.end <= data_bytes, "safetensors", "tensor \"", e.name,
                       "\": expected bytes up to ", data_start + e.end, ", got ", file, " of ",
                       data_start + data_bytes, " bytes (begins at byte ", data_start + e.begin,
                       ")");
    check<FormatError>(e.begin >= at, "safetensors", "tensor \"", e.name,
                       "\": expected bytes of its own, got ", file, " where they overlap \"",
                       previous != nullptr ? previous->name : "", "\" at byte ",
                       data_start + e.begin);
    check<FormatError>(e.begin == at, "safetensors", "tensor \"", e.name,
                       "\": expected to begin at byte ", data_start + at, ", got byte ",
                       data_start + e.begin, " of ", file);
    at = e.end;
    previous = &e;
  }
  check<FormatError>(at == data_bytes, "safetensors", "expected the end at byte ", data_start + at,
                     ", got ", file, " of ", data_start + data_bytes, " bytes");
}

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const Name& n : kNames)
    if (n.dtype == dtype) return n.text;
  return "";
}

Header parse_header(std::string_view json, uint64_t data_bytes, std::string_view file) {
  check<FormatError>(json.starts_with('{'), "safetensors",
                     "expected a header that begins with {, got ", file, " (byte 8)");
  Reader reader(file);
  Json::sax_parse(json.begin(), json.end(), &reader);
  Header header = std::move(reader.header);
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) {
                     return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
                   });
  check_ranges(header, 8 + json.size(), data_bytes, file);
  return header;
}

}  // namespace gable::io
