// SPDX-License-Identifier: Apache-2.0
// The ResNet-18 example end to end on a tiny data set: training, resume, evaluation, prediction,
// and bad input, which gives one line, a non-zero exit and no files.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "data_files.hpp"
#include "gable/io/safetensors.hpp"
#include "gable/memory/cuda.hpp"

#ifndef GABLE_EXAMPLE
TEST(Example, Runs) {
  GTEST_SKIP() << "the example was not built (it needs CLI11 and gable::data)";
}
#else

namespace gable {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

class Example : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / concat("gable_example_", static_cast<int64_t>(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_data();
    unsetenv("GABLE_CIFAR10");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The official binary version, cut down: 20 images a file.
  void write_data() const {
    fs::create_directories(folder_ / "data");
    for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"}) {
      std::ofstream out(folder_ / "data" / name, std::ios::binary);
      for (int i = 0; i < 20; ++i) {
        std::string record(3073, static_cast<char>(12 * i));
        record[0] = static_cast<char>(i % 10);
        out << record;
      }
    }
  }
  [[nodiscard]] std::string read(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Runs the program with `arguments` (a shell text) in the test's folder.
  Outcome run(const std::string& arguments) const {
    const std::string command = "cd " + folder_.string() + " && { " GABLE_EXAMPLE " " + arguments +
                                "; } >stdout.txt 2>stderr.txt";
    const int status = std::system(command.c_str());
    Outcome o{WIFEXITED(status) ? WEXITSTATUS(status) : 128, read(folder_ / "stdout.txt"),
              read(folder_ / "stderr.txt")};
    fs::remove(folder_ / "stdout.txt");
    fs::remove(folder_ / "stderr.txt");
    return o;
  }
  void expect_refused(const std::string& arguments, const std::string& part) const {
    const Outcome o = run(arguments);
    EXPECT_NE(o.code, 0) << arguments;
    EXPECT_LT(o.code, 128) << arguments;
    EXPECT_NE(o.err.find(part), std::string::npos) << arguments << "\n" << o.err;
    EXPECT_EQ(std::count(o.err.begin(), o.err.end(), '\n'), 1) << arguments << "\n" << o.err;
    EXPECT_EQ(o.err.find("resnet18_cifar10: "), 0U) << o.err;
  }
  [[nodiscard]] std::vector<std::string> files(const fs::path& folder) const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(folder)) names.push_back(e.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path folder_;
  const std::string tiny_ = "--data data --width 2 --batch 20 --threads 2 ";
};

TEST_F(Example, TrainsEvaluatesAndPredicts) {
  const Outcome o = run(tiny_ + "--epochs 2 --out run");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(o.err, "");
  EXPECT_NE(o.out.find("data: data\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("epoch   2/2  train loss "), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("done: model, checkpoint and metrics"), std::string::npos) << o.out;
  std::vector<std::string> expected{"checkpoint.safetensors", "metrics.csv", "metrics.jsonl",
                                    "metrics.png", "model.safetensors"};
  if (o.out.find("gnuplot") != std::string::npos) std::erase(expected, "metrics.png");
  EXPECT_EQ(files(folder_ / "run"), expected);
  const std::string metrics = read(folder_ / "run" / "metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 2);
  for (const char* key : {"\"epoch\":1,", "\"train_loss\":", "\"test_accuracy\":", "\"seconds\":"})
    EXPECT_NE(metrics.find(key), std::string::npos) << metrics;
  EXPECT_NE(io::load_safetensors(folder_ / "run" / "model.safetensors")
                .tensors.find("layer4.1.bn2.running_var"),
            nullptr);

  const Outcome eval = run("--data data --eval --out run");
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_NE(eval.out.find("test accuracy "), std::string::npos) << eval.out;
  EXPECT_EQ(files(folder_ / "run"), expected);

  data::test::write_file(folder_ / "one.jpg",
                         data::test::encode_jpeg(data::test::gradient_image(40, 30, 3)));
  for (const char* from : {"--out run", "--checkpoint run/checkpoint.safetensors",
                           "--checkpoint run/model.safetensors"}) {
    const Outcome p = run(std::string("predict one.jpg ") + from);
    EXPECT_EQ(p.code, 0) << p.err;
    EXPECT_EQ(p.out.find("one.jpg: "), 0U) << p.out;
    EXPECT_NE(p.out.find(" %\n"), std::string::npos) << p.out;
  }
  expect_refused("predict missing.jpg --out run", "missing.jpg");
  expect_refused("predict run/metrics.csv --out run", "metrics.csv");
  expect_refused("predict one.jpg --out nowhere", "nowhere/checkpoint.safetensors");
  expect_refused("predict one.jpg --checkpoint run/metrics.csv", "metrics.csv");

  // a finished run: nothing to do, and no other settings
  const std::string before = read(folder_ / "run" / "metrics.jsonl");
  EXPECT_EQ(run("--data data --resume --out run").code, 0);
  EXPECT_EQ(read(folder_ / "run" / "metrics.jsonl"), before);
  expect_refused("--data data --resume --out run --width 4", "--width 2");
  expect_refused("--resume --out run", "cifar10 data as in the checkpoint");
}

TEST_F(Example, CtrlCThenResumeEqualsAStraightRun) {
  for (const char* dtype : {"float", "bfloat16", "half"}) {
    const std::string options = tiny_ + "--epochs 3 --dtype " + dtype;
    const std::string a = concat("a_", dtype), b = concat("b_", dtype);
    ASSERT_EQ(run(options + " --out " + a).code, 0);
    // Interrupts once the first epoch's checkpoint is there; a run too fast to catch ends well.
    const Outcome stopped = run(
        options + " --out " + b + " & pid=$!; while kill -0 $pid 2>/dev/null && ! test -f " + b +
        "/checkpoint.safetensors; do sleep 0.01; done; kill -INT $pid 2>/dev/null; wait $pid");
    ASSERT_TRUE(stopped.code == 130 || stopped.code == 0) << stopped.code << stopped.err;
    EXPECT_TRUE(fs::exists(folder_ / b / "checkpoint.safetensors"));
    const Outcome resumed = run("--data data --threads 1 --resume --out " + b);
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_TRUE(read(folder_ / a / "model.safetensors") == read(folder_ / b / "model.safetensors"))
        << dtype;
    auto losses = [&](const std::string& run) {
      std::string all = read(folder_ / run / "metrics.jsonl"), out;
      for (size_t at = 0; (at = all.find("\"train_loss\"", at)) != std::string::npos; ++at)
        out += all.substr(at, all.find("\"seconds\"", at) - at) + "\n";
      return out;
    };
    EXPECT_EQ(losses(a), losses(b)) << dtype;
  }
}

TEST_F(Example, BadInput) {
  const std::vector<std::string> before = files(folder_);
  expect_refused("--no-such-option", "--no-such-option");
  expect_refused("stray", "stray");
  expect_refused("--epochs", "--epochs");
  expect_refused("--epochs 0", "--epochs");
  expect_refused("--epochs many", "--epochs");
  expect_refused("--epochs 2.5", "--epochs");
  expect_refused("--batch 1", "--batch");
  expect_refused("--batch -5", "--batch");
  expect_refused("--width 0", "--width");
  expect_refused("--lr nan", "lr");
  expect_refused("--lr -1", "--lr");
  expect_refused("--seed -1", "--seed");
  expect_refused("--threads -1", "--threads");
  expect_refused("--dtype double", "--dtype");
  expect_refused("--device tpu", "--device");
  if (cuda::device_count() == 0) expect_refused("--device cuda", "expected a usable CUDA device");
  expect_refused("predict", "IMAGE");
  expect_refused("--data nowhere --out run", "nowhere");
  expect_refused("--data data --batch 5000 --out run", "5000");
  expect_refused("--resume --out run", "run/checkpoint.safetensors");
  expect_refused("--eval --out run", "run/checkpoint.safetensors");
  expect_refused(tiny_ + "--out data/test_batch.bin", "data/test_batch.bin");
  expect_refused(tiny_ + "--out data/test_batch.bin/below", "data/test_batch.bin");
  expect_refused(tiny_ + "--out /proc/gable", "/proc/gable");
  EXPECT_EQ(files(folder_), before) << "files were left behind";
  fs::resize_file(folder_ / "data" / "data_batch_3.bin", 5000);
  expect_refused("--data data --out run", "data_batch_3.bin");
  fs::create_directories(folder_ / "bad");
  std::ofstream(folder_ / "bad" / "checkpoint.safetensors") << "not a checkpoint";
  expect_refused("--eval --out bad", "bad/checkpoint.safetensors");
  EXPECT_EQ(files(folder_ / "bad"), (std::vector<std::string>{"checkpoint.safetensors"}));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(Example, HelpShowsOptionsAndDefaults) {
  const Outcome o = run("--help");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(o.err, "");
  for (const char* part : {"--data", "--device", "--dtype", "--epochs", "--batch", "--lr",
                           "--width", "--seed", "--threads", "--quick", "--resume", "--eval",
                           "--out", "predict", "=30", "=128", "runs/resnet18_cifar10"})
    EXPECT_NE(o.out.find(part), std::string::npos) << part << "\n" << o.out;
}

TEST_F(Example, DataFromTheEnvironment) {
  setenv("GABLE_CIFAR10", (folder_ / "data").c_str(), 1);
  const Outcome o = run("--quick --epochs 1 --width 1 --out run");
  unsetenv("GABLE_CIFAR10");
  ASSERT_NE(o.out.find("data: " + (folder_ / "data").string()), std::string::npos) << o.out;
}

}  // namespace
}  // namespace gable
#endif
