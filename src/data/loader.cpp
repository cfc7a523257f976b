// SPDX-License-Identifier: Apache-2.0
// Loader: batches by pure functions, made in any order by workers, delivered in order.
#include "gable/data/loader.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>

#include "gable/core/philox.hpp"
#include "normalize.hpp"

namespace gable::data {

namespace {

// What random numbers are for; each (epoch, purpose) has a Philox stream of its own.
enum class Purpose : uint64_t { order = 0, augmentation = 1 };

uint64_t stream(int64_t epoch, Purpose purpose) {
  return (static_cast<uint64_t>(epoch) << 1) | static_cast<uint64_t>(purpose);
}

}  // namespace

std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(std::max<int64_t>(n, 0)));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; --i) {  // Fisher-Yates
    const auto words = philox(seed, i, stream(epoch, Purpose::order));
    const uint64_t draw = (uint64_t{words[0]} << 32) | words[1];
    std::swap(order[i - 1], order[draw % i]);
  }
  return order;
}

namespace {

// Makes any batch of one epoch; const and without locks, so that threads may share it.
class BatchMaker {
 public:
  BatchMaker(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, int64_t epoch)
      : dataset_(std::move(dataset)),
        options_(options),
        epoch_(epoch),
        table_(options.transform.normalization, "loader") {
    if (options.shuffle) order_ = epoch_order(dataset_->size(), options.seed, epoch);
  }

  [[nodiscard]] Batch make(int64_t batch) const {
    const int64_t begin = batch * options_.batch_size;
    const int64_t count = std::min(options_.batch_size, dataset_->size() - begin);
    Batch out{{}, Tensor<int64_t>({count}), batch};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = order_.empty() ? begin + i : order_[static_cast<size_t>(begin + i)];
      std::string reason = "unknown exception";
      try {
        put(index, i, count, out);
        continue;
      } catch (const std::exception& e) {
        reason = e.what();
        std::throw_with_nested(SampleError(index, describe(index, batch, reason)));
      } catch (...) {
        std::throw_with_nested(SampleError(index, describe(index, batch, reason)));
      }
    }
    return out;
  }

 private:
  [[nodiscard]] std::string describe(int64_t index, int64_t batch, const std::string& what) const {
    return concat("expected a sample, got an error for sample ", index, " (epoch ", epoch_,
                  ", batch ", batch, "): ", what);
  }

  void put(int64_t index, int64_t i, int64_t count, Batch& out) const {
    const Sample sample = dataset_->get(index);
    const ImageView& image = sample.image;
    const Shape shape = {count, image.channels, image.height, image.width};
    if (i == 0) {
      check(image.size() > 0 && image.channels <= kMaxChannels, "loader",
            "expected an image with pixels and at most ", kMaxChannels, " channels, got ",
            image.height, " x ", image.width, " x ", image.channels);
      out.images = Tensor<float>(shape, kCpu, MemoryFormat::channels_last);
    }
    check(shape == out.images.shape(), "loader",
          "expected images of one size in a batch, of shape ", out.images.shape(), ", got ", shape);
    out.labels.data()[i] = sample.label;
    transform(image, index, out.images.data() + i * image.size());
  }

  void transform(const ImageView& image, int64_t index, float* out) const {
    const int64_t padding = options_.transform.crop_padding;
    int64_t dx = 0;
    int64_t dy = 0;
    bool mirrored = false;
    if (padding > 0 || options_.transform.flip) {
      const auto words = philox(options_.seed, static_cast<uint64_t>(index),
                                stream(epoch_, Purpose::augmentation));
      const auto places = static_cast<uint64_t>(2 * padding + 1);
      dx = static_cast<int64_t>((words[0] * places) >> 32) - padding;
      dy = static_cast<int64_t>((words[1] * places) >> 32) - padding;
      mirrored = options_.transform.flip && (words[2] & 1U) != 0;
    }
    // Row y of the crop is row y + dy of the image; what lies outside is the mean colour.
    const int64_t row = image.width * image.channels;
    const int64_t first = std::clamp<int64_t>(-dx, 0, image.width);  // columns inside the image
    const int64_t last = std::clamp<int64_t>(image.width - dx, first, image.width);
    for (int64_t y = 0; y < image.height; ++y, out += row) {
      const bool inside = y + dy >= 0 && y + dy < image.height && last > first;
      if (!inside) {
        std::fill_n(out, row, 0.0F);
        continue;
      }
      const uint8_t* source = image.pixels + (y + dy) * row + (first + dx) * image.channels;
      const int64_t left = mirrored ? image.width - last : first;  // columns to fill on the left
      float* target = out + left * image.channels;
      float* target_end = target + (last - first) * image.channels;
      std::fill(out, target, 0.0F);
      if (mirrored) {
        table_.apply_mirrored(source, last - first, image.channels, target);
      } else {
        table_.apply(source, last - first, image.channels, target);
      }
      std::fill(target_end, out + row, 0.0F);
    }
  }

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  int64_t epoch_;
  detail::NormalizeTable table_;
  std::vector<int64_t> order_;
};

struct Made {
  std::optional<Batch> batch;
  std::exception_ptr error;
};

}  // namespace

// Batch k may be begun once fewer than `prefetch` batches before it are undelivered, so that slot
// k mod prefetch is free when it is done.
struct Epoch::State {
  State(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, int64_t epoch,
        int64_t first, int64_t count)
      : maker(std::move(dataset), options, epoch),
        slots(static_cast<size_t>(std::max(options.prefetch, options.workers))),
        claimed(first),
        delivered(first),
        end(count) {}
  ~State() { stop_and_join(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start(int workers) {
    const auto useful = std::min<int64_t>(workers, end - delivered);
    for (int64_t i = 0; i < useful; ++i) threads.emplace_back([this] { work(); });
  }

  void stop_and_join() noexcept {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    may_claim.notify_all();
    for (std::thread& thread : threads) thread.join();
    threads.clear();
  }

  [[nodiscard]] Made make(int64_t batch) const {
    try {
      return {maker.make(batch), nullptr};
    } catch (...) {
      return {std::nullopt, std::current_exception()};
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    const auto ahead = static_cast<int64_t>(slots.size());
    while (true) {
      may_claim.wait(lock, [&] { return stop || claimed == end || claimed < delivered + ahead; });
      if (stop || claimed == end) return;
      const int64_t batch = claimed++;
      lock.unlock();
      Made made = make(batch);
      lock.lock();
      slots[static_cast<size_t>(batch % ahead)] = std::move(made);
      is_made.notify_one();
    }
  }

  Made take() {
    if (threads.empty()) return make(delivered++);
    std::unique_lock lock(mutex);
    std::optional<Made>& slot = slots[static_cast<size_t>(delivered) % slots.size()];
    is_made.wait(lock, [&] { return slot.has_value(); });
    Made made = std::move(*slot);
    slot.reset();
    ++delivered;
    may_claim.notify_one();
    return made;
  }

  const BatchMaker maker;
  std::mutex mutex;  // guards all below but threads and error, which the consumer alone touches
  std::condition_variable may_claim;
  std::condition_variable is_made;
  std::vector<std::optional<Made>> slots;
  int64_t claimed;
  int64_t delivered;
  int64_t end;
  bool stop = false;
  std::vector<std::thread> threads;
  std::exception_ptr error;
};

Epoch::Epoch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Epoch::Epoch(Epoch&&) noexcept = default;
Epoch& Epoch::operator=(Epoch&&) noexcept = default;
Epoch::~Epoch() = default;

std::optional<Batch> Epoch::next() {
  check<Error>(state_ != nullptr, "loader", "expected an epoch, got one that was moved from");
  State& s = *state_;
  if (s.error) std::rethrow_exception(s.error);
  if (s.delivered == s.end) return std::nullopt;  // the consumer alone advances it
  Made made = s.take();
  if (made.error) {
    s.stop_and_join();
    s.error = made.error;
    std::rethrow_exception(s.error);
  }
  return std::move(made.batch);
}

Loader::Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  constexpr const char* kOp = "loader";
  check<TypeError>(dataset_ != nullptr, kOp, "expected a dataset, got none");
  check<TypeError>(options.batch_size >= 1, kOp, "expected a batch size of at least 1, got ",
                   options.batch_size);
  check<TypeError>(options.workers >= 0, kOp, "expected at least 0 workers, got ", options.workers);
  check<TypeError>(options.prefetch >= 1, kOp, "expected to prefetch at least 1 batch, got ",
                   options.prefetch);
  const int64_t padding = options.transform.crop_padding;
  check<TypeError>(padding >= 0 && padding <= 1'000'000, kOp,
                   "expected a crop padding of 0 .. 1000000, got ", padding);
  (void)detail::NormalizeTable(options.transform.normalization, kOp);
  const int64_t size = dataset_->size();
  check(size >= 1, kOp, "expected a dataset with samples, got ", size);
  batches_ = options.drop_last ? size / options.batch_size : (size - 1) / options.batch_size + 1;
  check(batches_ >= 1, kOp, "expected at least one full batch of ", options.batch_size,
        " with drop_last, got a dataset of ", size);
}

int64_t Loader::samples() const {
  return std::min(dataset_->size(), batches_ * options_.batch_size);
}

Epoch Loader::epoch(int64_t epoch, int64_t first) const {
  check<IndexError>(epoch >= 0, "loader", "expected an epoch of at least 0, got ", epoch);
  check<IndexError>(first >= 0 && first <= batches_, "loader", "expected a first batch in [0, ",
                    batches_, "], got ", first);
  auto state = std::make_unique<Epoch::State>(dataset_, options_, epoch, first, batches_);
  state->start(options_.workers);
  return Epoch(std::move(state));
}

}  // namespace gable::data
