// SPDX-License-Identifier: Apache-2.0
// MetricsWriter, Checkpoint, EarlyStop.
#include "gable/train/callbacks.hpp"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "gable/io/atomic_file.hpp"
#include "gable/train/trainer.hpp"

namespace gable::train {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kColumns = {
    "epoch", "step",    "train_loss",   "train_accuracy",    "test_loss",    "test_accuracy",
    "lr",    "seconds", "test_seconds", "images_per_second", "skipped_steps"};

std::string csv_header() {
  std::string text;
  for (const char* c : kColumns) {
    if (!text.empty()) text += ',';
    text += c;
  }
  return text;
}

// A missing value (no evaluation) is an empty field.
std::string csv_line(const Json& line) {
  std::string text;
  for (const char* c : kColumns) {
    if (c != kColumns.front()) text += ',';
    if (line.contains(c)) text += line.at(c).dump();
  }
  return text;
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& folder) : folder_(folder) {}

void MetricsWriter::on_start(TrainerBase& trainer, int64_t) {
  json_.clear();
  csv_.clear();
  const std::filesystem::path path = folder_ / "metrics.jsonl";
  std::ifstream in(path);
  int64_t number = 0;
  for (std::string line; trainer.epochs_done() > 0 && std::getline(in, line);) {
    ++number;
    const Json json = Json::parse(line, nullptr, false);
    const bool good = json.is_object() && json.contains("epoch") && json["epoch"].is_number();
    check<FormatError>(good, "metrics", "expected a JSON object with an epoch in each line, got ",
                       path.string(), " with another at line ", number);
    if (json["epoch"].get<int64_t>() > trainer.epochs_done()) continue;
    json_.push_back(line);
    csv_.push_back(csv_line(json));
  }
  write();
}

void MetricsWriter::on_epoch(TrainerBase&, const EpochEvent& e) {
  Json line;
  line["epoch"] = e.epoch;
  line["step"] = e.step;
  line["train_loss"] = e.train_loss;
  line["train_accuracy"] = e.train_accuracy;
  if (e.test_loss) line["test_loss"] = *e.test_loss;
  if (e.test_accuracy) line["test_accuracy"] = *e.test_accuracy;
  line["lr"] = e.lr;
  line["seconds"] = e.seconds;
  line["test_seconds"] = e.test_seconds;
  line["images_per_second"] = e.images_per_second;
  line["skipped_steps"] = e.skipped_steps;
  json_.push_back(line.dump());
  csv_.push_back(csv_line(line));
  write();
}

void MetricsWriter::write() const {
  std::string json;
  std::string csv = csv_header();
  csv += '\n';
  for (const std::string& line : json_) json.append(line).push_back('\n');
  for (const std::string& line : csv_) csv.append(line).push_back('\n');
  io::write_file(folder_ / "metrics.jsonl", json);
  io::write_file(folder_ / "metrics.csv", csv);
}

void Checkpoint::on_save(TrainerBase& trainer) { trainer.save_checkpoint(path_); }

EarlyStop::EarlyStop(int64_t patience, double min_delta)
    : patience_(patience), min_delta_(min_delta) {
  check<TypeError>(patience >= 1, "early_stop", "expected a patience >= 1, got ", patience);
}

void EarlyStop::on_epoch(TrainerBase& trainer, const EpochEvent& e) {
  if (!e.test_accuracy) return;
  if (*e.test_accuracy > best_ + min_delta_) {
    best_ = *e.test_accuracy;
    waited_ = 0;
  } else if (++waited_ >= patience_) {
    trainer.request_stop(StopReason::early);
  }
}

void EarlyStop::save(io::Metadata& metadata) const {
  metadata["early_stop"] = Json::array({best_, waited_}).dump();
}

void EarlyStop::load(const io::Metadata& metadata) {
  const auto found = metadata.find("early_stop");
  if (found == metadata.end()) return;  // the run had none so far
  const Json state = Json::parse(found->second, nullptr, false);
  check<FormatError>(
      state.is_array() && state.size() == 2 && state[0].is_number() && state[1].is_number(),
      "early_stop", "expected two numbers, got \"", found->second, "\"");
  best_ = state[0].get<double>();
  waited_ = state[1].get<int64_t>();
}

}  // namespace gable::train
