#include "scene.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headroom/sdk/draws.hpp"

namespace spike_hdf5 {

namespace {

using namespace headroom::sdk::literals;
namespace sdk = headroom::sdk;

constexpr uint64_t kDiscs = 3;

}  // namespace

Point Scene::Way::at(double time) const {
  const double swing = std::sin(phase + pace * time);
  return {start.down + velocity.down * time + sway.down * swing,
          start.right + velocity.right * time + sway.right * swing};
}

Scene::Way Scene::way_of(uint64_t key, const Size& size, double speed) {
  const auto draw = [&](uint64_t site) { return sdk::uniform(key, site); };
  const double angle = 2.0 * std::numbers::pi * draw("angle"_site), fast = speed * (0.5 + draw("speed"_site));
  return {{static_cast<double>(size.height) * draw("down"_site), static_cast<double>(size.width) * draw("right"_site)},
          {fast * std::sin(angle), fast * std::cos(angle)},
          {0.5 * speed * (draw("sway down"_site) - 0.5), 0.5 * speed * (draw("sway right"_site) - 0.5)},
          2.0 * std::numbers::pi * draw("phase"_site),
          1.0 + 2.0 * draw("pace"_site)};
}

Scene::Scene(uint64_t key, const Size& size, double speed)
    : background_way_(way_of(key, size, speed)), background_(key), row_(3 * size.width) {
  for (uint64_t i = 1; i <= kDiscs; ++i) {
    const uint64_t own = sdk::site(key, i);
    const double share = 0.1 + 0.12 * sdk::uniform(own, "size"_site);
    discs_.push_back(
        {way_of(own, size, 1.5 * speed), share * static_cast<double>(std::min(size.height, size.width)), Texture(own)});
  }
}

void Scene::render(double time, Picture& picture) {
  const Point origin = background_way_.at(time);
  for (uint64_t y = 0; y < picture.size.height; ++y) {
    const uint64_t at = y * picture.size.width;
    background_.row(origin, static_cast<int64_t>(y), 0, picture.size.width,
                    {picture.plane(0) + at, picture.plane(1) + at, picture.plane(2) + at});
  }
  for (const Disc& disc : discs_) draw(disc, time, picture);
}

// What leaves on one side comes in on the other.
void Scene::draw(const Disc& disc, double time, Picture& picture) {
  const auto height = static_cast<double>(picture.size.height), width = static_cast<double>(picture.size.width);
  const auto wrapped = [&](double place, double extent) {
    const double span = extent + 2.0 * disc.radius;
    return place - span * std::floor(place / span) - disc.radius;
  };
  const Point way = disc.way.at(time), centre{wrapped(way.down, height), wrapped(way.right, width)};
  const auto inside = [](double place, uint64_t extent) {
    return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(extent)));
  };
  const int64_t top = inside(centre.down - disc.radius - 1.0, picture.size.height);
  const int64_t bottom = inside(centre.down + disc.radius + 2.0, picture.size.height);
  const int64_t left = inside(centre.right - disc.radius - 1.0, picture.size.width);
  const int64_t right = inside(centre.right + disc.radius + 2.0, picture.size.width);
  if (left >= right) return;
  const auto count = static_cast<uint64_t>(right - left);
  const Point origin{-centre.down, -centre.right};  // the surface moves with the disc
  for (int64_t y = top; y < bottom; ++y) {
    disc.texture.row(origin, y, left, count, {row_.data(), row_.data() + count, row_.data() + 2 * count});
    for (uint64_t i = 0; i < count; ++i) {
      const double x = static_cast<double>(left) + static_cast<double>(i);
      const double far = std::hypot(static_cast<double>(y) - centre.down, x - centre.right);
      const auto share = static_cast<float>(std::clamp(disc.radius - far + 0.5, 0.0, 1.0));
      for (std::size_t c = 0; c < 3; ++c) {
        float& light =
            picture.plane(c)[static_cast<uint64_t>(y) * picture.size.width + static_cast<uint64_t>(left) + i];
        light += share * (row_[c * count + i] - light);
      }
    }
  }
}

}  // namespace spike_hdf5
