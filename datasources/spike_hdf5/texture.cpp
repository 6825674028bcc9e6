#include "texture.hpp"

#include <algorithm>
#include <cmath>

#include "headroom/sdk/draws.hpp"

namespace spike_hdf5 {

namespace {

using namespace headroom::sdk::literals;
namespace sdk = headroom::sdk;

constexpr uint64_t kLeaves = 1500;
constexpr double kLeastRadius = 1.5, kMostRadius = 40.0;

}  // namespace

Texture::Texture(uint64_t key) : picture_({kSide, kSide}) {
  for (uint64_t leaf = 0; leaf < kLeaves; ++leaf) {
    // Areas as often as their inverse, so that no size is special.
    const double share = sdk::uniform(key, "radius"_site, leaf);
    const double least = 1.0 / (kLeastRadius * kLeastRadius), most = 1.0 / (kMostRadius * kMostRadius);
    const double radius = 1.0 / std::sqrt(least + share * (most - least));
    const Point centre{kSide * sdk::uniform(key, "down"_site, leaf), kSide * sdk::uniform(key, "right"_site, leaf)};
    const double grey = sdk::uniform(key, "grey"_site, leaf);
    std::array<float, 3> colour;
    for (std::size_t c = 0; c < 3; ++c) {
      const double tint = 0.3 * (sdk::uniform(key, "tint"_site, 3 * leaf + c) - 0.5);
      colour[c] = static_cast<float>(std::pow(std::clamp(grey + tint, 0.02, 1.0), 2.2));
    }
    cover(centre, leaf == 0 ? 2.0 * kSide : radius, colour);
  }
}

void Texture::cover(const Point& centre, double radius, const std::array<float, 3>& colour) {
  const auto reach = std::min<int64_t>(static_cast<int64_t>(radius) + 2, kSide / 2);
  const auto middle_y = static_cast<int64_t>(centre.down), middle_x = static_cast<int64_t>(centre.right);
  for (int64_t y = middle_y - reach; y < middle_y + reach; ++y) {
    for (int64_t x = middle_x - reach; x < middle_x + reach; ++x) {
      const double far = std::hypot(static_cast<double>(y) - centre.down, static_cast<double>(x) - centre.right);
      const auto share = static_cast<float>(std::clamp(radius - far + 0.5, 0.0, 1.0));
      const std::size_t at = (static_cast<uint64_t>(y) % kSide) * kSide + static_cast<uint64_t>(x) % kSide;
      for (std::size_t c = 0; c < 3; ++c) {
        float& light = picture_.plane(c)[at];
        light += share * (colour[c] - light);
      }
    }
  }
}

void Texture::row(const Point& origin, int64_t y, int64_t left, uint64_t count, const std::array<float*, 3>& to) const {
  const double down = std::floor(origin.down), right = std::floor(origin.right);
  const auto v = static_cast<float>(origin.down - down), u = static_cast<float>(origin.right - right);
  const uint64_t upper = static_cast<uint64_t>(y + static_cast<int64_t>(down)) % kSide * kSide;
  const uint64_t lower = static_cast<uint64_t>(y + 1 + static_cast<int64_t>(down)) % kSide * kSide;
  const auto first = static_cast<uint64_t>(left + static_cast<int64_t>(right));
  for (std::size_t c = 0; c < 3; ++c) {
    const float *above = picture_.plane(c) + upper, *below = picture_.plane(c) + lower;
    const auto between = [&](uint64_t x) { return above[x % kSide] * (1.0f - v) + below[x % kSide] * v; };
    float before = between(first);
    for (uint64_t i = 0; i < count; ++i) {
      const float after = between(first + i + 1);
      to[c][i] = before * (1.0f - u) + after * u;
      before = after;
    }
  }
}

}  // namespace spike_hdf5
