// SPDX-License-Identifier: Apache-2.0
// Trainer: learning, exact resume (between and inside epochs), callbacks, errors, signals.
#include "gable/train/trainer.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <limits>

#include "gable/io/atomic_file.hpp"
#include "gable/optim/adamw.hpp"
#include "gable/train/callbacks.hpp"
#include "gable/train/stop.hpp"
#include "trainer_job.hpp"

namespace gable::train {
namespace {

// Times differ between runs; everything else must not.
std::string without_times(const std::string& jsonl) {
  std::string out;
  for (size_t at = 0; at < jsonl.size();) {
    const size_t end = jsonl.find('\n', at);
    const std::string line = jsonl.substr(at, end - at);
    out += line.substr(0, line.find("\"seconds\"")) + "\n";
    at = end + 1;
  }
  return out;
}

template <class T>
void expect_exact_resume(const fs::path& folder, const std::vector<int64_t>& stops) {
  Job<T> straight;
  Record& expected = straight.trainer.template add<Record>();
  EXPECT_EQ(straight.trainer.fit(train_loader(), test_loader(), 4), StopReason::finished);

  std::vector<EpochEvent> got;
  std::string bytes;
  const fs::path path = folder / "run.safetensors";
  for (size_t part = 0; part <= stops.size(); ++part) {
    Job<T> run({.seed = 100 + part});  // another seed, which the checkpoint must replace
    Record& record = run.trainer.template add<Record>();
    run.trainer.template add<Checkpoint>(path);
    if (part > 0)
      run.trainer.load_checkpoint(path);
    else
      default_generator().manual_seed(0);
    if (part < stops.size()) record.stop_at = stops[part];
    const StopReason reason = run.trainer.fit(train_loader(), test_loader(), 4);
    EXPECT_EQ(reason, part < stops.size() ? StopReason::stopped : StopReason::finished);
    got.insert(got.end(), record.epochs.begin(), record.epochs.end());
    bytes = run.bytes();
  }
  ASSERT_EQ(got.size(), expected.epochs.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].epoch, expected.epochs[i].epoch);
    EXPECT_EQ(got[i].step, expected.epochs[i].step);
    EXPECT_EQ(got[i].train_loss, expected.epochs[i].train_loss);
    EXPECT_EQ(got[i].train_accuracy, expected.epochs[i].train_accuracy);
    EXPECT_EQ(got[i].test_loss, expected.epochs[i].test_loss);
    EXPECT_EQ(got[i].test_accuracy, expected.epochs[i].test_accuracy);
    EXPECT_EQ(got[i].lr, expected.epochs[i].lr);
  }
  EXPECT_TRUE(bytes == straight.bytes()) << "the weights differ";
}

TEST_F(TrainerFiles, ResumesBitForBitInsideEpochs) {
  expect_exact_resume<float>(folder_, {3, 5, 14});  // 5 steps an epoch; 5 is before evaluation
  expect_exact_resume<bfloat16>(folder_, {7});
}

TEST_F(TrainerFiles, ResumesBetweenEpochsWithoutDuplicateMetrics) {
  fs::create_directories(folder_ / "a");
  fs::create_directories(folder_ / "b");
  Job<float> straight;
  straight.trainer.add<MetricsWriter>(folder_ / "a");
  straight.trainer.fit(train_loader(), test_loader(), 4);
  const fs::path path = folder_ / "run.safetensors";
  {
    Job<float> run;
    run.trainer.add<MetricsWriter>(folder_ / "b");
    run.trainer.fit(train_loader(), test_loader(), 2);
    run.trainer.save_checkpoint(path);
    run.trainer.fit(train_loader(), test_loader(), 3);  // a third epoch that is lost
  }
  Job<float> run;
  run.trainer.add<MetricsWriter>(folder_ / "b");
  run.trainer.load_checkpoint(path);
  EXPECT_EQ(run.trainer.epochs_done(), 2);
  run.trainer.fit(train_loader(), test_loader(), 4);
  EXPECT_TRUE(run.bytes() == straight.bytes());
  EXPECT_EQ(without_times(read("b/metrics.jsonl")), without_times(read("a/metrics.jsonl")));
  const std::string csv = read("b/metrics.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 5);
  // a finished run has nothing left to do
  EXPECT_EQ(run.trainer.fit(train_loader(), test_loader(), 4), StopReason::finished);
  EXPECT_TRUE(run.bytes() == straight.bytes());
}

TEST_F(TrainerFiles, LearnsAndReports) {
  Job<float> run;
  Record& record = run.trainer.add<Record>();
  run.trainer.add<MetricsWriter>(folder_);
  run.trainer.fit(train_loader(), test_loader(), 4);
  ASSERT_EQ(record.epochs.size(), 4U);
  EXPECT_LT(record.epochs[3].train_loss, record.epochs[0].train_loss);
  EXPECT_EQ(record.steps.size(), 20U);
  EXPECT_EQ(record.steps[6].epoch, 2);
  EXPECT_EQ(record.steps[6].batch, 2);
  EXPECT_EQ(record.steps[6].batches, 5);
  EXPECT_EQ(record.steps[4].samples, 300 - 4 * 64);
  EXPECT_EQ(record.end, StopReason::finished);
  EXPECT_TRUE(run.model.training());
  const Evaluation e = run.trainer.evaluate(test_loader());
  EXPECT_EQ(e.samples, 100);
  EXPECT_EQ(e.accuracy, *record.epochs[3].test_accuracy);
  EXPECT_EQ(e.loss, *record.epochs[3].test_loss);
  const std::string json = read("metrics.jsonl");
  EXPECT_EQ(json.find("{\"epoch\":1,\"step\":5,\"train_loss\":"), 0U) << json;
  EXPECT_NE(json.find("\"test_accuracy\":0."), std::string::npos) << json;
  EXPECT_EQ(
      read("metrics.csv")
          .find("epoch,step,train_loss,train_accuracy,test_loss,"
                "test_accuracy,lr,seconds,test_seconds,images_per_second,skipped_steps\n1,5,"),
      0U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
}

TEST_F(TrainerFiles, CheckpointsThatLieChangeNothing) {
  const fs::path path = folder_ / "run.safetensors";
  Job<float> run({.loss_scale = 8});
  run.trainer.fit(train_loader(), nullptr, 1);
  run.trainer.save_checkpoint(path);
  const io::Safetensors good = io::load_safetensors(path);
  const std::vector<std::pair<std::string, std::string>> lies = {
      {"early_stop", "nonsense"},  {"gable.epoch", "-1"}, {"gable.loss_scale", "0"},
      {"gable.loss_scale", "nan"}, {"scaler.scale", "0"}, {"scaler.skipped", "1"}};
  for (const auto& [key, value] : lies) {
    io::Metadata metadata = good.metadata;
    StateDict tensors;
    for (const auto& [name, tensor] : good.tensors)
      tensors.add(name,
                  name == key ? AnyTensor(scalar(std::stod(value))).to(tensor.dtype()) : tensor);
    if (good.tensors.find(key) == nullptr) metadata[key] = value;
    io::save_safetensors(path, tensors, metadata);
    Job<float> other({.loss_scale = 8});
    other.trainer.add<EarlyStop>(3);
    const std::string before = other.bytes();
    EXPECT_THROW(other.trainer.load_checkpoint(path), FormatError) << key;
    EXPECT_TRUE(other.bytes() == before) << key;
    EXPECT_EQ(other.trainer.steps_done(), 0) << key;
  }
}

TEST_F(TrainerFiles, EvaluatingInACallbackKeepsAStop) {
  struct Evaluates : Callback {
    void on_epoch(TrainerBase& t, const EpochEvent&) override {
      t.request_stop(StopReason::early);
      samples = t.evaluate(test_loader()).samples;
    }
    int64_t samples = 0;
  };
  Job<float> run;
  const Evaluates& callback = run.trainer.add<Evaluates>();
  EXPECT_EQ(run.trainer.fit(train_loader(), nullptr, 4), StopReason::early);
  EXPECT_EQ(run.trainer.epochs_done(), 1);
  EXPECT_EQ(callback.samples, 100);
}

TEST_F(TrainerFiles, NonFiniteLossNamesTheStep) {
  Job<float> run;
  run.trainer.fit(train_loader(), nullptr, 1);
  const std::string before = run.bytes();
  run.model.parameters()[0].master().as<float>()(0, 0) = std::nanf("");
  const std::string poisoned = run.bytes();
  try {
    run.trainer.fit(train_loader(), nullptr, 2);
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("step 6 (epoch 2, batch 1)"), std::string::npos)
        << e.what();
  }
  EXPECT_TRUE(run.bytes() == poisoned);
}

TEST_F(TrainerFiles, RefusesForeignCheckpoints) {
  const fs::path path = folder_ / "a.safetensors";
  Job<float> run;
  run.trainer.fit(train_loader(), nullptr, 1);
  run.trainer.save_checkpoint(path);
  {
    Job<float> other;
    other.trainer.load_checkpoint(path);
    EXPECT_THROW(other.trainer.fit(train_loader(32), nullptr, 2), Error);
  }
  models::MLP<float> small({3072, 8, 10});
  optim::SGD sgd(small.parameters(), {});
  Trainer<float> wrong_model(small, sgd, &loss_of<float>);
  EXPECT_THROW(wrong_model.load_checkpoint(path), Error);
  Job<float> fresh;
  optim::AdamW adam(fresh.model.parameters());
  Trainer<float> wrong_optimizer(fresh.model, adam, &loss_of<float>);
  const std::string before = fresh.bytes();
  EXPECT_THROW(wrong_optimizer.load_checkpoint(path), Error);
  EXPECT_TRUE(fresh.bytes() == before) << "a refused checkpoint changed the model";
  EXPECT_EQ(wrong_optimizer.epochs_done(), 0);
  io::save_safetensors(folder_ / "plain.safetensors", fresh.model.state_dict());
  EXPECT_THROW(fresh.trainer.load_checkpoint(folder_ / "plain.safetensors"), FormatError);
  EXPECT_THROW(fresh.trainer.load_checkpoint(folder_ / "none.safetensors"), io::FileError);
}

TEST_F(TrainerFiles, EarlyStopRemembersAcrossResume) {
  const fs::path path = folder_ / "a.safetensors";
  auto frozen = [] { return TrainerOptions{}; };
  auto run_until = [&](bool resume, int64_t epochs) {
    Job<float> run(frozen());
    run.optimizer.set_lr(0);
    optim::SGD still(run.model.parameters(), {.lr = 0});
    Trainer<float> trainer(run.model, still, &loss_of<float>);
    trainer.add<EarlyStop>(3);
    trainer.add<Checkpoint>(path);
    if (resume) trainer.load_checkpoint(path);
    const StopReason reason = trainer.fit(train_loader(), test_loader(), epochs);
    return std::pair(reason, trainer.epochs_done());
  };
  EXPECT_EQ(run_until(false, 2), std::pair(StopReason::finished, int64_t{2}));
  EXPECT_EQ(run_until(true, 10), std::pair(StopReason::early, int64_t{4}));
  EXPECT_THROW(EarlyStop(0), TypeError);
}

TEST_F(TrainerFiles, SignalStopsAfterTheStep) {
  class Raise : public Callback {
    void on_step(TrainerBase&, const StepEvent& e) override {
      if (e.step == 2) std::raise(SIGINT);
    }
  };
  Job<float> run;
  run.trainer.add<Raise>();
  run.trainer.add<Checkpoint>(folder_ / "a.safetensors");
  {
    const StopOnSignal guard;
    EXPECT_FALSE(StopOnSignal::requested());
    EXPECT_EQ(run.trainer.fit(train_loader(), test_loader(), 2), StopReason::stopped);
    EXPECT_TRUE(StopOnSignal::requested());
  }
  EXPECT_EQ(run.trainer.steps_done(), 2);
  const io::Metadata m = io::load_safetensors_metadata(folder_ / "a.safetensors");
  EXPECT_EQ(m.at("gable.batch"), "2");
  const StopOnSignal again;
  EXPECT_FALSE(StopOnSignal::requested());
}

TEST_F(TrainerFiles, ProgressWithoutTerminalIsPlainLines) {
  Job<float> run;
  const fs::path path = folder_ / "log";
  std::FILE* out = std::fopen(path.c_str(), "w");
  run.trainer.add<ProgressBar>(out, 0);
  run.trainer.fit(train_loader(), test_loader(), 2);
  std::fclose(out);
  const std::string text = read("log");
  EXPECT_EQ(text.find("epoch 1/2, step 1/5, "), 0U) << text;
  EXPECT_NE(text.find("epoch   2/2  train loss "), std::string::npos) << text;
  EXPECT_NE(text.find("test accuracy "), std::string::npos) << text;
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\033'), std::string::npos);
}

TEST_F(TrainerFiles, Plot) {
  io::write_file(folder_ / "metrics.csv",
                 "epoch,step,train_loss,train_accuracy,test_loss,test_accuracy,lr,seconds,"
                 "test_seconds,images_per_second\n1,5,2,0.2,2.1,0.3,0.1,1,1,10\n"
                 "2,10,1,0.5,1.1,0.6,0.1,1,1,10\n");
  const std::string problem = plot_metrics(folder_);
  if (problem.empty()) {
    EXPECT_EQ(read("metrics.png").substr(1, 3), "PNG");
  } else {
    EXPECT_NE(problem.find("gnuplot"), std::string::npos);
    EXPECT_EQ(problem.find('\n'), std::string::npos);
  }
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  EXPECT_NE(plot_metrics(folder_).find("apt-get install gnuplot-nox"), std::string::npos);
  setenv("PATH", path.c_str(), 1);
  EXPECT_FALSE(fs::exists(folder_ / "metrics.png.tmp"));
}

}  // namespace
}  // namespace gable::train
