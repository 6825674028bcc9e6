#include "camera.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "headroom/sdk/draws.hpp"

namespace spike_hdf5 {

namespace {

using namespace headroom::sdk::literals;
namespace sdk = headroom::sdk;

constexpr double kGamma = 2.2;
constexpr float kGain = 0.9925f;  // of full charge, by a step of full light
constexpr std::array<float, 3> kLuminance = {0.3f, 0.59f, 0.11f};

// [height, width, 3] of light / exposures, encoded.
void encode(const Picture& picture, double exposures, std::vector<float>& pixels) {
  for (uint64_t i = 0; i < picture.size.pixels(); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      const double light = std::clamp(picture.plane(c)[i] / exposures, 0.0, 1.0);
      pixels[3 * i + c] = static_cast<float>(std::pow(light, 1.0 / kGamma));
    }
  }
}

}  // namespace

Camera::Camera(Scene scene, const CameraPlan& plan, uint64_t key)
    : scene_(std::move(scene)), plan_(plan), light_(plan.frame), gathered_(plan.frame) {
  const uint64_t spike_pixels = plan.frame.pixels() / (plan.spike_factor * plan.spike_factor);
  for (uint64_t i = 0; i < spike_pixels; ++i)
    charge_.push_back(static_cast<float>(sdk::uniform(key, "charge"_site, i)));
  seen_.resize(spike_pixels);
  exposure_.blur.resize(3 * plan.frame.pixels());
  exposure_.sharp.resize(3 * plan.frame.pixels());
  exposure_.voxel.resize(plan.bins * spike_pixels);
}

const Exposure& Camera::next() {
  const uint64_t steps = plan_.steps();
  std::ranges::fill(gathered_.light, 0.0f);
  std::ranges::fill(exposure_.voxel, uint8_t{0});
  for (uint64_t step = 0; step < steps; ++step) {
    const double share = (static_cast<double>(step) + 0.5) / static_cast<double>(steps);
    scene_.render(static_cast<double>(frame_) + share, light_);
    for (std::size_t i = 0; i < light_.light.size(); ++i) gathered_.light[i] += light_.light[i];
    integrate(light_, step / plan_.steps_per_bin);
  }
  encode(gathered_, static_cast<double>(steps), exposure_.blur);
  scene_.render(static_cast<double>(frame_) + 0.5, light_);
  encode(light_, 1.0, exposure_.sharp);
  ++frame_;
  return exposure_;
}

void Camera::integrate(const Picture& light, uint64_t bin) {
  const uint64_t factor = plan_.spike_factor, width = plan_.frame.width / factor;
  std::ranges::fill(seen_, 0.0f);
  for (std::size_t c = 0; c < 3; ++c) {
    const float weight = kLuminance[c] * kGain / static_cast<float>(factor * factor);
    for (uint64_t y = 0; y < plan_.frame.height; ++y) {
      const float* row = light.plane(c) + y * plan_.frame.width;
      float* seen = seen_.data() + y / factor * width;
      for (uint64_t x = 0; x < width; ++x) {
        for (uint64_t part = 0; part < factor; ++part) seen[x] += weight * row[x * factor + part];
      }
    }
  }
  uint8_t* counts = exposure_.voxel.data() + bin * seen_.size();
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    charge_[i] += seen_[i];
    if (charge_[i] < 1.0f) continue;
    charge_[i] -= 1.0f;
    ++counts[i];
  }
}

}  // namespace spike_hdf5
