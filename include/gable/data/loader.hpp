// SPDX-License-Identifier: Apache-2.0
// Loader: shuffled, augmented, normalised batches, made ahead on worker threads.
#pragma once

#include <concepts>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gable/data/dataset.hpp"

namespace gable::data {

/// What is done to each image, in this order.
struct Transform {
  /// Pads each side by this many pixels of the mean colour (0 once normalised) and crops the
  /// original size at a random place.
  int64_t crop_padding = 0;
  /// Mirrors left to right with probability 1/2.
  bool flip = false;
  Normalization normalization = {};
};

struct LoaderOptions {
  int64_t batch_size = 128;
  bool shuffle = false;
  /// Leaves out a last batch that is not full.
  bool drop_last = false;
  uint64_t seed = 0;
  Transform transform = {};
  /// Threads that make batches; 0 makes each one when it is asked for.
  int workers = 1;
  /// Most batches that are ready or being made ahead of the consumer.
  int prefetch = 4;
};

struct Batch {
  /// (N, C, H, W), channels-last in memory.
  Tensor<float> images;
  /// (N).
  Tensor<int64_t> labels;
  /// Position in the epoch.
  int64_t index = 0;
};

/// A sample that could not be made. Nests what was thrown (std::rethrow_if_nested).
class SampleError : public Error {
 public:
  SampleError(int64_t index, std::string_view message,
              std::source_location where = std::source_location::current())
      : Error("loader", message, where), index_(index) {}
  /// The sample's index in the dataset.
  [[nodiscard]] int64_t index() const { return index_; }

 private:
  int64_t index_;
};

/// One pass over the data, in order of the batches. Move-only; its destructor stops and joins
/// its threads, also in mid-epoch. Use from one thread.
class Epoch {
 public:
  Epoch(Epoch&&) noexcept;
  Epoch& operator=(Epoch&&) noexcept;
  ~Epoch();

  /// The next batch, or nothing at the end. Throws SampleError when its turn comes for a batch
  /// that failed; earlier batches have been delivered then, and further calls throw it again.
  [[nodiscard]] std::optional<Batch> next();

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(Epoch& epoch) : epoch_(&epoch), batch_(epoch.next()) {}
    [[nodiscard]] Batch& operator*() { return *batch_; }
    [[nodiscard]] Batch* operator->() { return &*batch_; }
    Iterator& operator++() {
      batch_.reset();  // its memory may serve the next one
      batch_ = epoch_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return !it.batch_; }

   private:
    Epoch* epoch_;
    std::optional<Batch> batch_;
  };
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const { return {}; }

 private:
  friend class Loader;
  struct State;
  explicit Epoch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Makes batches of a dataset. What a batch holds depends on (seed, epoch, batch) alone, never
/// on the number of workers: the order is epoch_order(size, seed, epoch), and the random numbers
/// of a sample's augmentation come from (seed, epoch, sample index).
///
///     data::Loader loader(set.train, {.batch_size = 128, .shuffle = true, .seed = 1,
///                                     .transform = {.crop_padding = 4, .flip = true,
///                                                   .normalization = set.train.normalization()}});
///     for (data::Batch& batch : loader.epoch(0)) step(batch.images, batch.labels);
class Loader {
 public:
  /// Throws ShapeError for an empty dataset or no full batch with drop_last, TypeError for
  /// options out of range.
  Loader(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options);
  /// Keeps a copy of the dataset; copies of an ImageDataset share the images.
  template <std::derived_from<Dataset> D>
  Loader(D dataset, const LoaderOptions& options)
      : Loader(std::make_shared<const D>(std::move(dataset)), options) {}

  /// Batches in an epoch.
  [[nodiscard]] int64_t batches() const { return batches_; }
  /// Samples in an epoch; with drop_last those in full batches.
  [[nodiscard]] int64_t samples() const;
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }
  [[nodiscard]] const LoaderOptions& options() const { return options_; }

  /// Starts pass number `epoch` >= 0 at batch `first` in [0, batches()]; starting late costs
  /// nothing, so a run resumes in mid-epoch. Throws IndexError. The epoch may outlive the loader.
  [[nodiscard]] Epoch epoch(int64_t epoch, int64_t first = 0) const;

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  int64_t batches_ = 0;
};

/// The order of samples in a shuffled epoch: a permutation of 0 .. n-1, a pure function of its
/// arguments.
[[nodiscard]] std::vector<int64_t> epoch_order(int64_t n, uint64_t seed, int64_t epoch);

}  // namespace gable::data
