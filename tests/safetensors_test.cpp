// SPDX-License-Identifier: Apache-2.0
// Safetensors: round trips, the format's bytes, atomic writing, and files that lie.
#include "gable/io/safetensors.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "gable/io/atomic_file.hpp"
#include "gable/tensor/random.hpp"

namespace gable::io {
namespace {

namespace fs = std::filesystem;

// A folder of its own for each test, removed afterwards.
class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              concat("gable_io_", static_cast<int64_t>(getpid()), "_",
                     testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }
  [[nodiscard]] size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
};
class SafetensorsFiles : public Files {};
class AtomicFiles : public Files {};

std::string file_bytes(const std::string& json, size_t data, const char* values = nullptr) {
  const uint64_t length = json.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  out += json;
  const size_t at = out.size();
  out.resize(at + data);
  if (values != nullptr) std::memcpy(out.data() + at, values, data);
  return out;
}

Safetensors parse(const std::string& bytes) {
  return parse_safetensors(std::as_bytes(std::span(bytes)), "t.safetensors");
}

// Expects FormatError whose text has all of `parts`.
void expect_refused(const std::string& bytes, const std::vector<std::string>& parts) {
  try {
    (void)parse(bytes);
    ADD_FAILURE() << "accepted; expected an error with " << parts.at(0);
  } catch (const FormatError& e) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("t.safetensors"), std::string::npos) << e.what();
  }
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, G13HeaderAgainstBytes) {
  const float values[] = {1, 2};
  const Safetensors good =
      parse(file_bytes(entry("F32", "[2]", "[0,8]"), 8, reinterpret_cast<const char*>(values)));
  EXPECT_EQ(good.tensors.find("t")->as<float>().to_vector(), (std::vector<float>{1, 2}));
  expect_refused(file_bytes(entry("F32", "[32,8]", "[0,65536]"), 65536),
                 {"tensor \"t\"", "1024", "65536"});
  expect_refused(file_bytes(entry("F32", "[1000,1000]", "[0,4]"), 4), {"tensor \"t\"", "4000000"});
  expect_refused(file_bytes(entry("F32", "[1000,1000]", "[0,4000000]"), 4),
                 {"tensor \"t\"", "byte"});
  expect_refused(file_bytes(entry("F32", "[2]", "[8,0]"), 8), {"tensor \"t\"", "[8, 0]"});
  expect_refused(file_bytes(entry("F32", "[2]", "[0]"), 8), {"tensor \"t\"", "2 data_offsets"});
  expect_refused(file_bytes(entry("F32", "[-2]", "[0,8]"), 8), {"tensor \"t\"", "-2"});
  std::string wild = file_bytes(entry("F32", "[2]", "[0,8]"), 8);
  wild.resize(100);
  const uint64_t length = 0xFFFFFFFFFFFFFFFC;
  std::memcpy(wild.data(), &length, 8);
  expect_refused(wild, {"18446744073709551612", "byte 0"});
  expect_refused("12345", {"8 bytes", "5 bytes"});
  expect_refused("", {"0 bytes"});
}

TEST(Safetensors, RefusesOtherLies) {
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)") + a +
           R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_EQ(parse(file_bytes(two("[8,16]", "[0,8]"), 16)).tensors.begin()->first, "b");
  expect_refused(file_bytes(two("[0,8]", "[4,12]"), 12), {"\"b\"", "overlap", "\"a\""});
  expect_refused(file_bytes(two("[0,8]", "[0,8]"), 8), {"overlap"});
  expect_refused(file_bytes(two("[0,8]", "[12,20]"), 20), {"\"b\"", "begin at byte"});
  expect_refused(file_bytes(two("[0,8]", "[8,16]"), 20), {"end at byte"});
  expect_refused(file_bytes(two("[0,8]", "[8,16]"), 12), {"\"b\""});
  expect_refused(file_bytes(entry("F8_E4M3", "[8]", "[0,8]"), 8), {"\"t\"", "F8_E4M3"});
  expect_refused(file_bytes(entry("f32", "[2]", "[0,8]"), 8), {"\"t\"", "f32"});
  expect_refused(file_bytes(entry("F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), 8),
                 {"\"t\"", "at most 8"});
  expect_refused(file_bytes(entry("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), 8),
                 {"\"t\""});
  expect_refused(file_bytes(entry("F32", "[4294967296,4294967296]", "[0,0]"), 0), {"\"t\""});
  expect_refused(file_bytes(entry("F32", "[18446744073709551615]", "[0,8]"), 8), {"\"t\""});
  expect_refused(file_bytes(entry("F32", "[99999999999999999999999]", "[0,8]"), 8), {"\"t\""});
  expect_refused(file_bytes(entry("F32", "[2.0]", "[0,8]"), 8), {"\"t\"", "2.0"});
  expect_refused(file_bytes(entry("F32", "[2]", "[0,8,8]"), 8), {"\"t\"", "got 3"});
  expect_refused(file_bytes(entry("F32", "[[2]]", "[0,8]"), 8), {"\"t\"", "list"});
  expect_refused(file_bytes(entry("F32", "2", "[0,8]"), 8), {"\"t\""});
  expect_refused(file_bytes(entry("F32", "null", "[0,8]"), 8), {"\"t\"", "null"});
  expect_refused(file_bytes(entry("F32", "true", "[0,8]"), 8), {"\"t\"", "bool"});
  expect_refused(file_bytes(entry("F32", "{}", "[0,8]"), 8), {"\"t\"", "object"});
  expect_refused(file_bytes(R"({"t":{"dtype":"F32","shape":[2]}})", 8), {"\"t\"", "data_offsets"});
  expect_refused(file_bytes(R"({"t":{}})", 0), {"\"t\"", "dtype"});
  expect_refused(file_bytes(R"({"t":[]})", 0), {"\"t\""});
  expect_refused(file_bytes(R"({"t":1})", 0), {"\"t\""});
  expect_refused(file_bytes(R"({"t":"x"})", 0), {"\"t\""});
  expect_refused(
      file_bytes(R"({"t":{"dtype":"F32","dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0),
      {"\"t\"", "twice"});
  expect_refused(file_bytes(R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                            R"("t":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                            0),
                 {"\"t\"", "twice"});
  expect_refused(file_bytes(R"({"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0],"x":[1]}})", 0),
                 {"\"t\"", "\"x\""});
  expect_refused(file_bytes(R"({"__metadata__":{"a":1}})", 0), {"__metadata__"});
  expect_refused(file_bytes(R"({"__metadata__":{"a":"b","a":"c"}})", 0), {"twice"});
  expect_refused(file_bytes(R"({"__metadata__":{"a":{}}})", 0), {"__metadata__"});
}

TEST(Safetensors, RefusesBadJson) {
  expect_refused(file_bytes("", 0), {"byte 8"});
  expect_refused(file_bytes("[]", 0), {"byte 8"});
  expect_refused(file_bytes("{", 0), {"byte"});
  expect_refused(file_bytes("{}{}", 0), {"byte 10"});
  expect_refused(file_bytes("{\"a\":", 0), {"byte"});
  expect_refused(file_bytes("{\"a\xff\":1}", 0), {"byte 11"});
  expect_refused(file_bytes("{\"a\":\"\\ud800\"}", 0), {"byte"});
  expect_refused(file_bytes(std::string("{\0}", 3), 0), {"byte 9"});
  std::string deep = R"({"t":{"shape":)";
  deep.append(2'000'000, '[');
  expect_refused(file_bytes(deep, 0), {"\"t\"", "list"});
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"t":)";
  expect_refused(file_bytes(objects, 0), {"\"t\""});
  EXPECT_EQ(parse(file_bytes("{}   ", 0)).tensors.size(), 0U);
}

TEST(Safetensors, EmptyTensorsAndScalars) {
  const Safetensors s =
      parse(file_bytes(R"({"a":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                       R"("b":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                       R"("c":{"dtype":"U8","shape":[4,0],"data_offsets":[8,8]}})",
                       8));
  EXPECT_EQ(s.tensors.find("a")->shape(), (Shape{0, 3}));
  EXPECT_EQ(s.tensors.find("b")->as<int64_t>().item(), 0);
  EXPECT_EQ(s.tensors.find("c")->shape(), (Shape{4, 0}));
}

TEST(Safetensors, BoolsAreZeroOrOne) {
  const char good[] = {0, 1};
  EXPECT_EQ(parse(file_bytes(entry("BOOL", "[2]", "[0,2]"), 2, good))
                .tensors.find("t")
                ->as<bool>()
                .to_vector(),
            (std::vector<bool>{false, true}));
  const char bad[] = {1, 7};
  const std::string json = entry("BOOL", "[2]", "[0,2]");
  expect_refused(file_bytes(json, 2, bad), {"\"t\"", concat("byte ", 8 + json.size() + 1)});
}

TEST_F(SafetensorsFiles, RoundTripsEveryDtypeAndStride) {
  Generator g(1);
  StateDict dict;
  dict.add("u8", randint<uint8_t>(0, 255, {5}, {}, g).any());
  dict.add("bool", bernoulli(0.5, {3, 3}, {}, g).any());
  dict.add("half", randn<half>({3, 5}, 0, 1, {}, g).any());
  dict.add("bf16", randn<bfloat16>({7}, 0, 1, {}, g).any());
  dict.add("i32", randint<int32_t>(-9, 9, {2, 2}, {}, g).any());
  dict.add("i64", randint<int64_t>(-9, 9, {3}, {}, g).any());
  dict.add("double", randn<double>({2, 1, 3}, 0, 1, {}, g).any());
  dict.add("scalar", scalar<float>(-0.0F).any());
  dict.add("empty", zeros<float>({2, 0}).any());
  const auto base = randn<float>({4, 6, 2, 2}, 0, 1, {}, g);
  dict.add("transposed", base.transpose(0, 1).any());
  dict.add("channels_last", base.contiguous(MemoryFormat::channels_last).any());
  dict.add("sliced", base.slice(1, 5, std::nullopt, -2).any());
  dict.add("expanded", scalar<float>(3).expand({2, 2}).any());
  dict.add("näme \"quoted\"\n", scalar<float>(1).any());
  const Metadata metadata{{"epoch", "3"}, {"text", "zwei\nZeilen ü"}};
  const fs::path path = folder_ / "all.safetensors";
  save_safetensors(path, dict, metadata);
  const Safetensors back = load_safetensors(path);
  EXPECT_EQ(back.metadata, metadata);
  EXPECT_EQ(load_safetensors_metadata(path), metadata);
  ASSERT_EQ(back.tensors.size(), dict.size());
  for (const auto& [name, tensor] : dict) {
    const AnyTensor* read = back.tensors.find(name);
    ASSERT_NE(read, nullptr) << name;
    EXPECT_EQ(read->dtype(), tensor.dtype()) << name;
    EXPECT_EQ(read->shape(), tensor.shape()) << name;
    const AnyTensor want = tensor.contiguous();
    if (want.bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(read->data(), want.data(), static_cast<size_t>(want.bytes())), 0) << name;
  }
  EXPECT_EQ(count(), 1U);
}

TEST_F(SafetensorsFiles, WritesTheFormat) {
  StateDict dict;
  dict.add("b", from_data<uint8_t>({7}).any());
  dict.add("a", from_data<float>({1, 2}).any());
  save_safetensors(folder_ / "f", dict);
  std::ifstream in(folder_ / "f", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  std::string json = bytes.substr(8, length);
  json.erase(json.find_last_not_of(' ') + 1);
  EXPECT_EQ(json, R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                  R"("b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})");
  EXPECT_EQ(bytes.size(), 8 + length + 9);
  struct stat info {};
  ASSERT_EQ(stat((folder_ / "f").c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IRUSR, 0U);
}

TEST_F(SafetensorsFiles, CutFilesAreRefusedAtEveryLength) {
  StateDict dict;
  dict.add("a", from_data<float>({1, 2}).any());
  save_safetensors(folder_ / "f", dict);
  std::ifstream in(folder_ / "f", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW((void)parse(bytes.substr(0, n)), FormatError) << n;
}

TEST_F(SafetensorsFiles, RefusesWhatItCannotWriteOrRead) {
  StateDict dict;
  dict.add("a\xff", from_data<float>({1}).any());
  EXPECT_THROW(save_safetensors(folder_ / "f", dict), FormatError);
  StateDict reserved;
  reserved.add("__metadata__", from_data<float>({1}).any());
  EXPECT_THROW(save_safetensors(folder_ / "f", reserved), FormatError);
  StateDict undefined;
  undefined.add("a", AnyTensor());
  EXPECT_THROW(save_safetensors(folder_ / "f", undefined), TypeError);
  EXPECT_THROW((void)load_safetensors(folder_ / "missing"), FileError);
  EXPECT_THROW((void)load_safetensors(folder_), FileError);
  EXPECT_EQ(count(), 0U);
  try {
    save_safetensors(folder_ / "no" / "f", StateDict());
    FAIL();
  } catch (const FileError& e) {
    EXPECT_NE(std::string(e.what()).find((folder_ / "no" / "f").string()), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("No such file"), std::string::npos) << e.what();
  }
}

TEST_F(AtomicFiles, KeepsTheOldFileUntilCommit) {
  const fs::path path = folder_ / "f";
  write_file(path, "old");
  auto content = [&] {
    std::ifstream in(path);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(content(), "old");
  }
  EXPECT_EQ(content(), "old");
  EXPECT_EQ(count(), 1U);
  write_file(path, "new");
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(count(), 1U);
  EXPECT_THROW(AtomicFile{folder_}, FileError);
}

TEST_F(AtomicFiles, LeftoversOfAKilledProcessDoNotMatter) {
  const fs::path path = folder_ / "f";
  for (int i = 0; i < 100; ++i)
    std::ofstream(concat(path.string(), ".tmp-", static_cast<int64_t>(getpid()), "-", i)) << "left";
  write_file(path, "new");
  EXPECT_EQ(fs::file_size(path), 3U);
  EXPECT_EQ(count(), 101U);
}

TEST_F(AtomicFiles, DevicesAndPipesAreNotReplaced) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(AtomicFile{pipe}, FileError);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(StateDicts, ManyNamesTakeNoQuadraticTime) {
  StateDict dict;
  constexpr int64_t kNames = 200'000;
  for (int64_t i = 0; i < kNames; ++i) dict.add(concat("t", i), AnyTensor());
  EXPECT_NE(dict.find("t199999"), nullptr);
  EXPECT_EQ(dict.find("t200000"), nullptr);
  EXPECT_THROW(dict.add("t7", AnyTensor()), Error);
  EXPECT_EQ(dict.size(), static_cast<size_t>(kNames));
}

TEST_F(AtomicFiles, WritableFolders) {
  require_writable_folder(folder_ / "a" / "b");
  EXPECT_TRUE(fs::is_empty(folder_ / "a" / "b"));
  write_file(folder_ / "file", "");
  EXPECT_THROW(require_writable_folder(folder_ / "file"), FileError);
  EXPECT_THROW(require_writable_folder(folder_ / "file" / "below"), FileError);
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THROW(require_writable_folder(folder_), FileError);
  EXPECT_THROW(write_file(folder_ / "f", "x"), FileError);
}

}  // namespace
}  // namespace gable::io
