// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a trainer: one safetensors file.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "gable/tensor/random.hpp"
#include "gable/train/trainer.hpp"

namespace gable::train {

namespace {

constexpr const char* kFormat = "checkpoint-1";

// Shortest text that reads back as the same number.
template <class N>
std::string text_of(N value) {
  std::array<char, 40> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

class MetadataReader {
 public:
  MetadataReader(const io::Metadata& metadata, const std::string& path)
      : metadata_(metadata), path_(path) {}
  template <class N>
  void read(const char* key, N& value) const {
    const std::string text = text_at(key);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    check<FormatError>(error == std::errc{} && end == text.data() + text.size(), "checkpoint",
                       "expected a number at \"", key, "\", got \"", text, "\" in ", path_);
  }
  [[nodiscard]] std::string text_at(const char* key) const {
    const auto found = metadata_.find(key);
    check<FormatError>(found != metadata_.end(), "checkpoint", "expected an entry \"", key,
                       "\" of a training checkpoint, got ", path_, " without it");
    return found->second;
  }

 private:
  const io::Metadata& metadata_;
  const std::string& path_;
};

// The entries that begin with `prefix`, without it.
StateDict part(const StateDict& all, std::string_view prefix) {
  StateDict out;
  for (const auto& [name, tensor] : all)
    if (name.starts_with(prefix)) out.add(name.substr(prefix.size()), tensor);
  return out;
}

}  // namespace

void TrainerBase::save_checkpoint(const std::filesystem::path& path) const {
  StateDict tensors;
  for (const auto& [name, tensor] : model_.state_dict()) tensors.add("model." + name, tensor);
  for (const auto& [name, tensor] : optimizer_.state_dict())
    tensors.add("optimizer." + name, tensor);
  if (scaler_)
    for (const auto& [name, tensor] : scaler_->state_dict()) tensors.add("scaler." + name, tensor);
  io::Metadata m = options_.metadata;
  for (const auto& c : callbacks_) c->save(m);
  const Generator::State random = default_generator().state();
  m["gable.format"] = kFormat;
  m["gable.epoch"] = text_of(at_.epoch);
  m["gable.batch"] = text_of(at_.batch);
  m["gable.step"] = text_of(at_.step);
  m["gable.skipped"] = text_of(skipped_steps());
  m["gable.loss_sum"] = text_of(at_.loss_sum);
  m["gable.correct"] = text_of(at_.correct);
  m["gable.samples"] = text_of(at_.samples);
  m["gable.seconds"] = text_of(at_.seconds);
  m["gable.random_seed"] = text_of(random.seed);
  m["gable.random_offset"] = text_of(random.offset);
  m["gable.loader"] = loader_text_;
  io::save_safetensors(path, tensors, m);
}

void TrainerBase::load_checkpoint(const std::filesystem::path& path) {
  const io::Safetensors file = io::load_safetensors(path);
  const std::string name = path.string();
  const MetadataReader m(file.metadata, name);
  const std::string format = m.text_at("gable.format");
  check<FormatError>(format == kFormat, "checkpoint", "expected format ", kFormat, ", got ", format,
                     " in ", name);
  Position at;
  Generator::State random;
  m.read("gable.epoch", at.epoch);
  m.read("gable.batch", at.batch);
  m.read("gable.step", at.step);
  m.read("gable.skipped", at.skipped);
  m.read("gable.loss_sum", at.loss_sum);
  m.read("gable.correct", at.correct);
  m.read("gable.samples", at.samples);
  m.read("gable.seconds", at.seconds);
  m.read("gable.random_seed", random.seed);
  m.read("gable.random_offset", random.offset);
  const std::string loader = m.text_at("gable.loader");
  check<FormatError>(
      std::min({at.epoch, at.batch, at.step, at.skipped, at.correct, at.samples}) >= 0,
      "checkpoint", "expected counts of at least 0, got others in ", name);
  std::optional<amp::GradScaler> scaler;
  if (scaler_) {
    const auto check_scale = [&](double scale) {
      check<FormatError>(std::isfinite(scale) && scale > 0, "checkpoint",
                         "expected a loss scale > 0, got ", scale, " in ", name);
    };
    double scale = 1;  // older files have it here, and 1 where they did not scale
    if (file.metadata.contains("gable.loss_scale")) m.read("gable.loss_scale", scale);
    check_scale(scale);
    const StateDict state = part(file.tensors, "scaler.");
    scaler = make_scaler(scale == 1 ? options_.loss_scale : scale);
    if (state.size() > 0) scaler->load_state_dict(state);
    check_scale(scaler->current_scale());
    const int64_t skipped = scaler->steps_skipped();
    check<FormatError>(skipped >= 0 && skipped <= at.skipped, "checkpoint", "expected at most ",
                       at.skipped, " steps skipped by the scaler, got ", skipped, " in ", name);
    at.skipped -= skipped;
  }
  // To go back if a part does not fit; the optimizer, which comes last, changes nothing then.
  io::Metadata callbacks_before;
  for (const auto& c : callbacks_) c->save(callbacks_before);
  StateDict model_before;
  for (const auto& [key, tensor] : model_.state_dict()) model_before.add(key, tensor.clone());
  try {
    for (const auto& c : callbacks_) c->load(file.metadata);
    model_.load_state_dict(part(file.tensors, "model."));
    optimizer_.load_state_dict(part(file.tensors, "optimizer."));
  } catch (...) {
    model_.load_state_dict(model_before);
    for (const auto& c : callbacks_) c->load(callbacks_before);
    throw;
  }
  at_ = at;
  if (scaler) scaler_ = std::move(scaler);
  loader_text_ = loader;
  default_generator().set_state(random);
}

io::Metadata load_model(const std::filesystem::path& path, nn::AnyModule& model) {
  io::Safetensors file = io::load_safetensors(path);
  const StateDict weights = part(file.tensors, "model.");
  model.load_state_dict(weights.size() > 0 ? weights : file.tensors);
  return std::move(file.metadata);
}

}  // namespace gable::train
