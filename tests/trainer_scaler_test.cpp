// SPDX-License-Identifier: Apache-2.0
// Trainer with a loss scaler, on every device: skipped steps, records, checkpoints.
#include <gtest/gtest.h>

#include <cmath>

#include "errors.hpp"
#include "gable/memory/cuda.hpp"
#include "gable/train/callbacks.hpp"
#include "gable/train/trainer.hpp"
#include "trainer_job.hpp"

namespace gable::train {
namespace {

class TrainerScaler : public TrainerFiles, public testing::WithParamInterface<DeviceType> {
 protected:
  void SetUp() override {
    TrainerFiles::SetUp();
    if (GetParam() == DeviceType::cuda && cuda::device_count() == 0)
      GTEST_SKIP() << "no CUDA device: " << cuda::unavailable_reason();
  }
  [[nodiscard]] TrainerOptions options(double scale, int64_t growth = 2000, double clip = 0) const {
    return {.clip_norm = clip,
            .loss_scale = scale,
            .loss_scale_growth = growth,
            .device = {GetParam(), 0}};
  }
};

TEST_P(TrainerScaler, ScalesAndGrows) {
  const auto weights = [](const TrainerOptions& options, double scale) {
    Job<float> run(options);
    run.trainer.fit(train_loader(), nullptr, 1);
    EXPECT_EQ(run.trainer.skipped_steps(), 0);
    EXPECT_EQ(run.trainer.scaler() ? run.trainer.scaler()->current_scale() : 1, scale);
    return run.model.parameters()[0].master().as<float>().to_vector();
  };
  const auto plain = weights(options(1), 1);
  EXPECT_EQ(weights(options(256, 2), 1024), plain) << "powers of two change no bit";
  const auto clipped = weights(options(1, 1, 0.5), 1);
  const auto both = weights(options(256, 2000, 0.5), 256);
  EXPECT_NE(clipped, plain);
  for (size_t i = 0; i < both.size(); ++i) ASSERT_NEAR(both[i], clipped[i], 1e-6) << i;
  EXPECT_THROW(Job<float>(options(0)), TypeError);
  EXPECT_THROW(Job<float>(options(1e300)), TypeError);
  EXPECT_THROW(Job<float>(options(1, 0)), TypeError);
}

TEST_P(TrainerScaler, OverflowSkipsTheStep) {
  Job<half> run(options(0x1p24));
  Record& record = run.trainer.add<Record>();
  run.trainer.add<MetricsWriter>(folder_);
  const std::string before = run.bytes();
  record.stop_at = 1;
  run.trainer.fit(train_loader(), nullptr, 2);
  EXPECT_EQ(run.trainer.skipped_steps(), 1);
  EXPECT_EQ(run.trainer.scaler()->current_scale(), 0x1p23);
  EXPECT_TRUE(run.bytes() == before);
  run.trainer.fit(train_loader(), nullptr, 2);
  const int64_t skipped = run.trainer.skipped_steps();
  EXPECT_LT(skipped, 10);
  EXPECT_EQ(run.trainer.scaler()->steps_taken() + skipped, 10);
  EXPECT_FALSE(run.bytes() == before);
  for (float v : run.model.parameters()[0].master().as<float>().to_vector())
    ASSERT_TRUE(std::isfinite(v));
  EXPECT_EQ(record.epochs.at(1).skipped_steps, skipped);
  EXPECT_HAS(read("metrics.jsonl"), concat("\"skipped_steps\":", skipped, "}"));
}

// Overflows, halvings and growth come before and after each stop.
TEST_P(TrainerScaler, ResumesBitForBit) {
  const fs::path path = folder_ / "run.safetensors";
  const TrainerOptions scaling = options(0x1p24, 3);
  const auto finish = [&](const std::vector<int64_t>& stops) {
    for (size_t part = 0;; ++part) {
      Job<half> run(scaling);
      Record& record = run.trainer.add<Record>();
      run.trainer.add<Checkpoint>(path);
      if (part > 0) run.trainer.load_checkpoint(path);
      if (part < stops.size()) record.stop_at = stops[part];
      run.trainer.fit(train_loader(), nullptr, 4);
      if (part == stops.size())
        return std::tuple(run.bytes(), run.trainer.skipped_steps(),
                          run.trainer.scaler()->current_scale(),
                          run.trainer.scaler()->steps_taken());
    }
  };
  const auto straight = finish({});
  EXPECT_GT(std::get<1>(straight), 4);
  EXPECT_TRUE(finish({2, 9, 15}) == straight);
}

TEST_P(TrainerScaler, CheckpointsWithoutAScaler) {
  const fs::path path = folder_ / "run.safetensors";
  Job<half> run(options(64));
  run.trainer.fit(train_loader(), nullptr, 1);
  run.trainer.save_checkpoint(path);
  const io::Safetensors file = io::load_safetensors(path);
  StateDict without;
  for (const auto& [name, tensor] : file.tensors)
    if (!name.starts_with("scaler.")) without.add(name, tensor);
  EXPECT_EQ(without.size() + 4, file.tensors.size());
  const auto scale_after = [&](const char* scale_of_file) {
    io::Metadata metadata = file.metadata;
    if (scale_of_file != nullptr) metadata["gable.loss_scale"] = scale_of_file;
    metadata["gable.skipped"] = "2";
    io::save_safetensors(path, without, metadata);
    Job<half> resumed(options(0x1p24));
    resumed.trainer.load_checkpoint(path);
    EXPECT_EQ(resumed.trainer.skipped_steps(), 2);
    const double scale = resumed.trainer.scaler()->current_scale();
    resumed.trainer.add<Record>().stop_at = 6;
    resumed.trainer.fit(train_loader(), nullptr, 2);
    EXPECT_EQ(resumed.trainer.skipped_steps(), scale == 0x1p24 ? 3 : 2);  // the count goes on
    return scale;
  };
  EXPECT_EQ(scale_after("512"), 512);       // of an older gable
  EXPECT_EQ(scale_after("1"), 0x1p24);      // of an older gable, not scaled
  EXPECT_EQ(scale_after(nullptr), 0x1p24);  // not scaled
  io::save_safetensors(path, file.tensors, file.metadata);
  Job<half> unscaled(options(1));
  unscaled.trainer.load_checkpoint(path);
  EXPECT_EQ(unscaled.trainer.scaler(), nullptr);
}

std::string device_name(const testing::TestParamInfo<DeviceType>& info) {
  return info.param == DeviceType::cuda ? "Cuda" : "Cpu";
}
INSTANTIATE_TEST_SUITE_P(Devices, TrainerScaler, testing::Values(DeviceType::cpu, DeviceType::cuda),
                         device_name);

}  // namespace
}  // namespace gable::train
