// SPDX-License-Identifier: Apache-2.0
// Trains ResNet-18 on CIFAR-10 (or on the built-in data set), evaluates it, and predicts images.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "gable/data/cifar10.hpp"
#include "gable/data/synthetic.hpp"
#include "gable/gable.hpp"
#include "gable/io/atomic_file.hpp"
#include "gable/train/callbacks.hpp"
#include "gable/train/stop.hpp"
#include "gable/train/trainer.hpp"

using namespace gable;
namespace fs = std::filesystem;

struct Settings {
  std::string data = "built-in", device = "auto", dtype = "float", out = "runs/resnet18_cifar10",
              checkpoint;
  int64_t epochs = 30, batch = 128, width = 64;
  double lr = 0.1;
  uint64_t seed = 0;
  int threads = 0;
  bool quick = false, resume = false, eval = false;
  std::vector<std::string> images;
  Device where;               // --device
  std::string kind, classes;  // of the data: "cifar10" or "built-in"; names joined by commas

  [[nodiscard]] fs::path file() const {
    return checkpoint.empty() ? fs::path(out) / "checkpoint.safetensors" : fs::path(checkpoint);
  }
  // What a checkpoint keeps, so that --resume, --eval and predict need no options again.
  [[nodiscard]] io::Metadata save() const {
    return {{"--dtype", dtype},
            {"--lr", concat(lr)},
            {"--epochs", concat(epochs)},
            {"--batch", concat(batch)},
            {"--seed", concat(seed)},
            {"--width", concat(width)},
            {"kind", kind},
            {"classes", classes}};
  }
  // Takes a checkpoint's settings; with --resume, an option that says otherwise is an error.
  void restore(CLI::App& app) {
    const io::Metadata m = io::load_safetensors_metadata(file());
    for (const auto& [key, value] : save()) {
      check<FormatError>(m.contains(key), "checkpoint", "expected one of this example, got ",
                         file().string(), " without \"", key, "\"");
      check<TypeError>(!resume || key[0] != '-' || app.count(key) == 0 || m.at(key) == value,
                       "--resume", "expected ", key, " ", m.at(key), " of the run, got ", value);
      if (key[0] != '-') continue;
      CLI::Option* option = app.get_option(key);  // which checks the value, too
      option->clear();
      option->add_result(m.at(key));
      option->run_callback();
    }
    kind = m.at("kind");
    classes = m.at("classes");
  }
};

data::TrainTest open_data(Settings& s) {
  const std::string kind = s.data == "built-in" ? s.data : "cifar10";
  check<TypeError>(s.kind.empty() || s.kind == kind, "--data", "expected ", s.kind,
                   " data as in the checkpoint, got ", kind);
  s.kind = kind;
  std::printf("data: %s\n",
              kind == "built-in" ? "built-in shapes (--data PATH for CIFAR-10)" : s.data.c_str());
  auto set = kind == "built-in" ? data::SyntheticShapes::make() : data::Cifar10::open(s.data);
  s.classes = CLI::detail::join(set.train.class_names(), ",");
  return set;
}

template <class T>
models::ResNet18<T> make_model(const Settings& s) {
  Generator g(s.seed);
  const auto classes = static_cast<int64_t>(CLI::detail::split(s.classes, ',').size());
  return models::ResNet18<T>(
      {.num_classes = classes, .width = s.width, .stem = models::Stem::cifar}, g);
}

template <class T>
int predict(const Settings& s) {
  auto model = make_model<T>(s);
  train::load_model(s.file(), model);
  model.to(s.where);
  model.eval();
  const NoGrad no_grad;
  const data::Normalization norm =
      s.kind == "cifar10" ? data::Cifar10::kNormalization : data::SyntheticShapes::kNormalization;
  for (const std::string& path : s.images) {
    const data::Image image = data::resize(data::read_image(path).view(), 32, 32);
    const auto input = data::to_batch(image.view(), norm).to(s.where);
    const auto logits = model(Variable<T>(input.template to<T>()));
    const auto p = softmax(logits.value().template to<float>(), 1).to_vector();
    const auto best = static_cast<size_t>(std::max_element(p.begin(), p.end()) - p.begin());
    std::printf("%s: %s %.1f %%\n", path.c_str(),
                CLI::detail::split(s.classes, ',').at(best).c_str(), 100.0 * p[best]);
  }
  return 0;
}

template <class T>
int run(Settings s) {
  if (!s.images.empty()) return predict<T>(s);
  const data::TrainTest set = open_data(s);
  data::Transform transform{.normalization = set.train.normalization()};
  const data::Loader test(set.test, {.batch_size = 250, .transform = transform});
  transform.crop_padding = 4;
  transform.flip = true;
  const data::Loader train(set.train, {.batch_size = s.batch,
                                       .shuffle = true,
                                       .drop_last = true,
                                       .seed = s.seed,
                                       .transform = transform});
  auto model = make_model<T>(s);
  model.to(s.where);
  const optim::SGDOptions options{
      .lr = s.lr, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true};
  optim::SGD sgd(optim::decay_groups(model.parameters(), options));
  const optim::OneCycle schedule{s.lr, s.epochs * train.batches(), 0.25};  // 25 % rising
  auto loss = [](auto&& x, auto&& y) { return cross_entropy(x, y, {.label_smoothing = 0.1}); };
  train::Trainer<T> trainer(model, sgd, loss,
                            {.schedule = schedule,
                             .seed = s.seed,
                             .loss_scale = std::is_same_v<T, half> ? 1024.0 : 1.0,
                             .device = s.where,
                             .metadata = s.save()});
  const fs::path out = s.out;
  if (!s.eval) io::require_writable_folder(out);
  trainer.template add<train::MetricsWriter>(out);
  trainer.template add<train::Checkpoint>(out / "checkpoint.safetensors");
  trainer.template add<train::ProgressBar>();
  if (s.resume || s.eval) trainer.load_checkpoint(s.file());
  if (s.eval) {
    const train::Evaluation e = trainer.evaluate(test);
    std::printf("test accuracy %.2f %%, loss %.4f\n", 100 * e.accuracy, e.loss);
    return 0;
  }
  std::puts(concat("ResNet-18, width ", s.width, ", ", model.num_parameters(), " parameters, ",
                   s.dtype, ", ",
                   s.where == kCpu ? concat(num_threads(), " threads") : cuda::device_name(s.where),
                   ", ", s.epochs, " epochs of ", train.batches(), " steps")
                .c_str());
  const train::StopOnSignal ctrl_c;
  if (trainer.fit(train, test, s.epochs) == train::StopReason::stopped) {
    std::printf("continue with: --resume --out %s\n", s.out.c_str());
    return 130;
  }
  io::save_safetensors(out / "model.safetensors", model.state_dict(), s.save());
  const std::string no_picture = train::plot_metrics(out);
  if (!no_picture.empty()) std::puts(no_picture.c_str());
  std::printf("done: model, checkpoint and metrics%s are in %s\n",
              no_picture.empty() ? " with a picture" : "", s.out.c_str());
  return 0;
}

int dispatch(Settings& s, CLI::App& app) {
  if (s.quick && app.count("--width") == 0) s.width = 16;
  if (s.quick && app.count("--epochs") == 0) s.epochs = 4;
  if (s.threads > 0) set_num_threads(s.threads);
  check<DeviceError>(s.device != "cuda" || cuda::device_count() > 0, "--device",
                     "expected a usable CUDA device, got none: ", cuda::unavailable_reason());
  if (s.device == "auto") s.device = cuda::device_count() > 0 ? "cuda" : "cpu";
  s.where = device_from_string(s.device);
  if (s.resume || s.eval || !s.images.empty()) s.restore(app);
  return s.dtype == "float" ? run<float>(s) : s.dtype == "half" ? run<half>(s) : run<bfloat16>(s);
}

int main(int argc, char** argv) {
  using CLI::IsMember, CLI::Range;
  Settings s;
  CLI::App app("Trains ResNet-18 on CIFAR-10, or on built-in images of shapes without any files.");
  app.option_defaults()->always_capture_default();
  app.add_option("--data", s.data,
                 "CIFAR-10, a folder or tar of binary files or JPEGs; or built-in")
      ->envname("GABLE_CIFAR10");
  app.add_option("--device", s.device, "Compute here; auto: cuda if there is a device")
      ->check(IsMember({"auto", "cpu", "cuda"}));
  app.add_option("--dtype", s.dtype, "Of weights and activations; masters stay float")
      ->check(IsMember({"float", "bfloat16", "half"}));
  app.add_option("--epochs", s.epochs, "Passes over the training images")->check(Range(1, 100000));
  app.add_option("--batch", s.batch, "Images a step")->check(Range(2, 100000));
  app.add_option("--lr", s.lr, "Peak of the one-cycle learning rate")->check(Range(1e-9, 100.0));
  app.add_option("--width", s.width, "Channels of the first stage")->check(Range(1, 1024));
  app.add_option("--seed", s.seed, "Of weights, order and augmentation")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--threads", s.threads, "CPU threads, 0 for all")->check(Range(0, 1024));
  app.add_flag("--quick", s.quick, "A setting for CPUs: --width 16 --epochs 4 unless given");
  app.add_flag("--resume", s.resume, "Continue the run in --out, with its settings");
  app.add_flag("--eval", s.eval, "Only evaluate the checkpoint on the test images");
  app.add_option("--checkpoint", s.checkpoint, "Of --resume, --eval, predict. Default: in --out");
  app.add_option("--out", s.out, "Folder of checkpoints, metrics and the picture");
  CLI::App* images = app.add_subcommand("predict", "Print class and probability of JPEG images");
  images->add_option("IMAGE", s.images, "JPEG files; resized to 32x32")->required();
  images->fallthrough();
  try {
    app.parse(argc, argv);
    return dispatch(s, app);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    std::fprintf(stderr, "resnet18_cifar10: %s (see --help)\n", e.what());
    return 2;
  } catch (const Error& e) {
    std::fprintf(stderr, "resnet18_cifar10: %s: %s\n", e.op().c_str(), e.message().c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "resnet18_cifar10: %s\n", e.what());
  }
  return 1;
}
