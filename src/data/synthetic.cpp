// SPDX-License-Identifier: Apache-2.0
// The built-in data set: shapes as signed distances, textures as waves.
#include "gable/data/synthetic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include "gable/core/parallel.hpp"
#include "gable/core/philox.hpp"

namespace gable::data {

namespace {

constexpr int64_t kSide = 32;
constexpr float kPi = std::numbers::pi_v<float>;

enum class Kind {
  disc,
  square,
  triangle,
  ring,
  cross,
  star,
  horizontal,
  vertical,
  diagonal,
  checkerboard
};

// Numbers of one image: a stream of its own.
class Random {
 public:
  Random(uint64_t seed, Split split, int64_t index)
      : seed_(seed),
        stream_((static_cast<uint64_t>(index) << 1) | (split == Split::test ? 1U : 0U)) {}
  float uniform(float low, float high) { return low + (high - low) * uniform_from_bits(next()); }
  bool coin() { return (next() & 1U) != 0; }
  /// About normal: the sum of four bytes has nearly a bell's shape and costs one word.
  float noise() {
    const uint32_t w = next();
    const uint32_t sum = (w & 255U) + ((w >> 8) & 255U) + ((w >> 16) & 255U) + (w >> 24);
    return (static_cast<float>(sum) - 510.0F) / 147.8F;
  }

 private:
  uint32_t next() {
    if (used_ == 4) {
      words_ = philox(seed_, counter_++, stream_);
      used_ = 0;
    }
    return words_[used_++];
  }
  uint64_t seed_;
  uint64_t stream_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> words_{};
  size_t used_ = 4;
};

using Color = std::array<float, 3>;

Color random_color(Random& random) {
  return {random.uniform(0, 255), random.uniform(0, 255), random.uniform(0, 255)};
}

float distance(const Color& a, const Color& b) {
  return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

// Distance to the border of a shape of radius r around the origin, negative inside.
float box(float x, float y, float half_width, float half_height) {
  const float dx = std::abs(x) - half_width;
  const float dy = std::abs(y) - half_height;
  return std::hypot(std::max(dx, 0.0F), std::max(dy, 0.0F)) + std::min(std::max(dx, dy), 0.0F);
}

// A polygon whose border runs between `outer` at the tips and `inner` in the middle between two.
float polygon(float x, float y, int tips, float outer, float inner) {
  const float sector = 2 * kPi / static_cast<float>(tips);
  float angle = std::atan2(y, x);
  angle = std::abs(angle - sector * std::round(angle / sector));  // folded: 0 is a tip
  const float radius = std::hypot(x, y);
  const float px = radius * std::cos(angle);
  const float py = radius * std::sin(angle);
  const float ex = inner * std::cos(sector / 2) - outer;  // the edge from the tip
  const float ey = inner * std::sin(sector / 2);
  return ((px - outer) * ey - py * ex) / std::hypot(ex, ey);
}

float shape_distance(Kind kind, float x, float y, float r) {
  switch (kind) {
    case Kind::disc: return std::hypot(x, y) - r;
    case Kind::square: return box(x, y, 0.85F * r, 0.85F * r);
    case Kind::triangle: return polygon(x, y, 3, 1.2F * r, 0.6F * r);
    case Kind::ring: return std::abs(std::hypot(x, y) - 0.8F * r) - 0.24F * r;
    case Kind::cross: return std::min(box(x, y, 1.1F * r, 0.3F * r), box(x, y, 0.3F * r, 1.1F * r));
    default: return polygon(x, y, 5, 1.25F * r, 0.5F * r);
  }
}

// How a texture's second colour mixes in, 0 .. 1, with soft borders about a pixel wide.
struct Texture {
  float fx = 0, fy = 0, phase_x = 0, phase_y = 0;  // waves along two directions
  float gx = 0, gy = 0;
  float sharpness = 1;
  bool both = false;

  [[nodiscard]] float mix(float x, float y) const {
    float wave = std::sin(fx * x + fy * y + phase_x);
    if (both) wave *= std::sin(gx * x + gy * y + phase_y);
    return std::clamp(0.5F + sharpness * wave, 0.0F, 1.0F);
  }
};

Texture random_texture(Kind kind, Random& random) {
  const float tilt = random.uniform(-0.2F, 0.2F);
  float angle = tilt;  // of the wave's direction: 0 makes vertical stripes
  if (kind == Kind::horizontal) angle += kPi / 2;
  if (kind == Kind::diagonal) angle += random.coin() ? kPi / 4 : -kPi / 4;
  if (kind == Kind::checkerboard) angle = random.uniform(0, kPi);
  const float frequency = 2 * kPi / random.uniform(5, 12);
  Texture texture;
  texture.fx = frequency * std::cos(angle);
  texture.fy = frequency * std::sin(angle);
  texture.gx = -texture.fy;
  texture.gy = texture.fx;
  texture.phase_x = random.uniform(0, 2 * kPi);
  texture.phase_y = random.uniform(0, 2 * kPi);
  texture.sharpness = random.uniform(0.6F, 2.0F);
  texture.both = kind == Kind::checkerboard;
  return texture;
}

void render_into(Split split, int64_t index, uint64_t seed, uint8_t* out) {
  Random random(seed, split, index);
  const auto kind = static_cast<Kind>(index % SyntheticShapes::kClasses);
  const Color back = random_color(random);
  Color front = random_color(random);
  while (distance(front, back) < 90) front = random_color(random);
  // The background's colour changes from left to right and from top to bottom.
  std::array<float, 6> slope{};
  for (float& s : slope) s = random.uniform(-1.2F, 1.2F);
  const float radius = random.uniform(6, 12);
  const float cx = random.uniform(radius, static_cast<float>(kSide) - radius);
  const float cy = random.uniform(radius, static_cast<float>(kSide) - radius);
  const float turn = random.uniform(0, 2 * kPi);
  const float ct = std::cos(turn);
  const float st = std::sin(turn);
  const bool is_shape = kind < Kind::horizontal;
  const Texture texture = random_texture(kind, random);
  const float noise = random.uniform(4, 18);

  for (int64_t iy = 0; iy < kSide; ++iy) {
    for (int64_t ix = 0; ix < kSide; ++ix) {
      const float x = static_cast<float>(ix) + 0.5F;
      const float y = static_cast<float>(iy) + 0.5F;
      float mix = 0;
      if (is_shape) {
        const float u = ct * (x - cx) + st * (y - cy);
        const float v = ct * (y - cy) - st * (x - cx);
        mix = std::clamp(0.5F - shape_distance(kind, u, v, radius), 0.0F, 1.0F);
      } else {
        mix = texture.mix(x, y);
      }
      for (size_t c = 0; c < 3; ++c) {
        const float ground = back[c] + slope[c] * (x - 16) + slope[3 + c] * (y - 16);
        const float value = ground + mix * (front[c] - ground) + noise * random.noise();
        *out++ = static_cast<uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
      }
    }
  }
}

}  // namespace

Image SyntheticShapes::render(Split split, int64_t index, uint64_t seed) {
  check<IndexError>(index >= 0, "synthetic_shapes", "expected an index of at least 0, got ", index);
  Image image{kSide, kSide, 3, {}};
  image.pixels.resize(kSide * kSide * 3);
  render_into(split, index, seed, image.pixels.data());
  return image;
}

ImageDataset SyntheticShapes::make(Split split, int64_t count, uint64_t seed) {
  check(count >= 1, "synthetic_shapes", "expected at least 1 image, got ", count);
  Tensor<uint8_t> images({count, kSide, kSide, 3});
  Tensor<int64_t> labels({count});
  parallel_for(count, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      labels.data()[i] = i % kClasses;
      render_into(split, i, seed, images.data() + i * kSide * kSide * 3);
    }
  });
  return {std::move(images),
          std::move(labels),
          {"disc", "square", "triangle", "ring", "cross", "star", "horizontal stripes",
           "vertical stripes", "diagonal stripes", "checkerboard"},
          kNormalization};
}

TrainTest SyntheticShapes::make(const SyntheticOptions& options) {
  return {make(Split::train, options.train, options.seed),
          make(Split::test, options.test, options.seed)};
}

}  // namespace gable::data
