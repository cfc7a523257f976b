// SPDX-License-Identifier: Apache-2.0
// A small training run, and a folder of its own for a test's files.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gable/data/synthetic.hpp"
#include "gable/models/mlp.hpp"
#include "gable/ops/loss.hpp"
#include "gable/optim/sgd.hpp"
#include "gable/train/trainer.hpp"

namespace gable::train {

namespace fs = std::filesystem;

template <class C>
Variable<C> loss_of(const Variable<C>& logits, const Tensor<int64_t>& labels) {
  return cross_entropy(logits, labels);
}

inline const data::TrainTest& set() {
  static const data::TrainTest instance = data::SyntheticShapes::make({.train = 300, .test = 100});
  return instance;
}

inline data::Loader train_loader(int64_t batch = 64) {
  return {set().train,
          {.batch_size = batch,
           .shuffle = true,
           .seed = 3,
           .transform = {
               .crop_padding = 2, .flip = true, .normalization = set().train.normalization()}}};
}
inline data::Loader test_loader() {
  return {set().test, {.transform = {.normalization = set().test.normalization()}}};
}

// A model with dropout (random numbers) and an optimizer with state.
template <class T>
struct Job {
  explicit Job(TrainerOptions options = {})
      : generator(7),
        model({3072, 32, 10}, {.dropout = 0.2}, generator),
        optimizer(on(options.device).parameters(), {.lr = 0.01, .momentum = 0.9, .nesterov = true}),
        trainer(model, optimizer, &loss_of<Compute<T>>, with_schedule(std::move(options))) {}
  static TrainerOptions with_schedule(TrainerOptions options) {
    options.schedule = optim::OneCycle{.max_lr = 0.01, .total_steps = 4 * 5};
    return options;
  }
  models::MLP<T>& on(Device device) {
    model.to(device);
    return model;
  }
  [[nodiscard]] std::string bytes() const {
    std::string all;
    for (const auto& [name, tensor] : model.state_dict()) {
      const AnyTensor host = tensor.to(kCpu);
      all.append(static_cast<const char*>(host.data()), static_cast<size_t>(host.bytes()));
    }
    return all;
  }
  Generator generator;
  models::MLP<T> model;
  optim::SGD optimizer;
  Trainer<T> trainer;
};

class Record : public Callback {
 public:
  void on_epoch(TrainerBase&, const EpochEvent& e) override { epochs.push_back(e); }
  void on_step(TrainerBase& t, const StepEvent& e) override {
    steps.push_back(e);
    if (e.step == stop_at) t.request_stop();
  }
  void on_end(TrainerBase&, StopReason r) override { end = r; }
  std::vector<EpochEvent> epochs;
  std::vector<StepEvent> steps;
  int64_t stop_at = -1;
  StopReason end = StopReason::early;
};

class TrainerFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / concat("gable_trainer_", static_cast<int64_t>(getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string read(const char* name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path folder_;
};

}  // namespace gable::train
