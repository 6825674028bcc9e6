#include "signals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "headroom/sdk/draws.hpp"

namespace emg_hdf5 {

namespace {

using namespace headroom::sdk::literals;
using headroom::sdk::site;
using headroom::sdk::uniform;

constexpr double kTau = 2.0 * std::numbers::pi;
constexpr uint64_t kFingerJoints = 4;
constexpr double kSlowest = 0.5,
                 kFastest = 1.8;  // Hz of a movement's waves: fast enough that a pose does not tell the next window's
constexpr double kTypical = 0.7;  // Hz at which position and velocity drive a muscle alike
constexpr std::size_t kWaves = 4;

double between(double low, double high, uint64_t key, uint64_t at, uint64_t i = 0) {
  return low + (high - low) * uniform(key, at, i);
}

// Spreading joints (the second of the thumb, the first of the others) swing both ways; the rest bend.
bool spreads(uint64_t joint) { return joint % kFingerJoints == (joint < kFingerJoints ? 1u : 0u); }

}  // namespace

Hand::Hand(const SignalOptions& options) : channels_(options.channels) {
  const uint64_t key = options.seed;
  const uint64_t fingers = (options.joints + kFingerJoints - 1) / kFingerJoints;
  const uint64_t movements = fingers + 1;  // bending each finger, and spreading the hand
  for (uint64_t j = 0; j < options.joints; ++j) {
    const uint64_t finger = j / kFingerJoints;
    Joint joint{0.6, 0.6, std::vector<double>(movements, 0.0)};
    joint.movement[finger] = between(0.9, 1.1, key, "bend"_site, j);
    joint.movement[fingers] = between(-0.1, 0.1, key, "spread"_site, j);
    if (spreads(j)) {
      joint = {0.0, 0.2, std::vector<double>(movements, 0.0)};
      joint.movement[finger] = 0.3;
      joint.movement[fingers] = finger % 2 == 0 ? -1.0 : 1.0;
    }
    joints_.push_back(std::move(joint));
  }
  for (uint64_t k = 0; k < movements; ++k) {
    position_gain_.push_back(between(0.6, 1.0, key, "position"_site, k));
    velocity_gain_.push_back(between(0.6, 1.0, key, "velocity"_site, k));
  }
  for (uint64_t m = 0; m < muscles(); ++m) {
    muscle_place_.push_back(kTau * std::numbers::phi * static_cast<double>(m) +
                            between(0.0, 0.1, key, "place"_site, m));
  }
}

void Hand::angles(std::span<const double> position, std::span<float> out) const {
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    double x = 0.0;
    for (std::size_t k = 0; k < position.size(); ++k) x += joints_[j].movement[k] * position[k];
    out[j] = static_cast<float>(joints_[j].rest + joints_[j].range * x / std::sqrt(1.0 + x * x));
  }
}

void Hand::activity(std::span<const double> position, std::span<const double> velocity, std::span<double> out) const {
  for (std::size_t k = 0; k < position.size(); ++k) {
    const double drive = position_gain_[k] * position[k] + velocity_gain_[k] * velocity[k];
    const double size = std::sqrt(drive * drive + 0.1);  // a muscle never rests quite
    out[2 * k] = 0.5 * (size + drive);
    out[2 * k + 1] = 0.5 * (size - drive);
  }
}

std::vector<double> Hand::electrodes(double rotation, double gain) const {
  std::vector<double> weights;
  for (uint64_t c = 0; c < channels_; ++c) {
    const double place = kTau * static_cast<double>(c) / static_cast<double>(channels_) - rotation;
    for (const double muscle : muscle_place_)
      weights.push_back(gain * std::exp(4.0 * (std::cos(place - muscle) - 1.0)));
  }
  return weights;
}

Carrier::Carrier(double sample_rate_hz) {
  high_ = std::exp(-kTau * std::min(30.0, 0.1 * sample_rate_hz) / sample_rate_hz);
  const double edge = std::tan(std::numbers::pi * std::min(400.0, 0.4 * sample_rate_hz) / sample_rate_hz);
  const double scale = 1.0 / (1.0 + std::numbers::sqrt2 * edge + edge * edge);
  const double b = edge * edge * scale;
  low_ = {b, 2.0 * b, b, 2.0 * (edge * edge - 1.0) * scale, (1.0 - std::numbers::sqrt2 * edge + edge * edge) * scale};
  State state;
  double power = 0.0;
  for (int i = 0; i < 1000; ++i) {
    const double response = filter(i == 0 ? 1.0 : 0.0, state);
    power += response * response;
  }
  gain_ = 1.0 / std::sqrt(power);
}

double Carrier::filter(double white, State& s) const {
  s.high = high_ * (s.high + white - s.input);
  s.input = white;
  const double y = low_[0] * s.high + low_[1] * s.x1 + low_[2] * s.x2 - low_[3] * s.y1 - low_[4] * s.y2;
  s.x2 = s.x1;
  s.x1 = s.high;
  s.y2 = s.y1;
  s.y1 = y;
  return y;
}

double Carrier::next(double white) { return gain_ * filter(white, state_); }

Session::Session(const Hand& hand, const SignalOptions& options, uint64_t user, uint64_t session)
    : hand_(&hand), options_(options), key_(hr_sample_key(options.seed, 0, user, session)) {
  const uint64_t user_key = hr_sample_key(options.seed, 1, 0, user);
  for (std::size_t k = 0; k < hand.movements(); ++k) {
    std::vector<Wave>& waves = waves_.emplace_back();
    double power = 0.0;
    for (std::size_t w = 0; w < kWaves; ++w) {
      const uint64_t i = k * kWaves + w;
      waves.push_back({between(kSlowest, kFastest, key_, "frequency"_site, i),
                       between(0.0, kTau, key_, "phase"_site, i), between(0.5, 1.0, key_, "amplitude"_site, i)});
      power += waves.back().amplitude * waves.back().amplitude;
    }
    for (Wave& wave : waves) wave.amplitude *= std::sqrt(2.0 / power);
  }
  electrodes_ = hand.electrodes(between(-0.1, 0.1, user_key, "rotation"_site), between(0.9, 1.1, key_, "gain"_site));
  carriers_.assign(hand.muscles(), Carrier(options.sample_rate_hz));
  position_.resize(hand.movements());
  velocity_.resize(hand.movements());
  signal_.resize(hand.muscles());
}

// Four uniform halves of a word of 64 bits: close to normal, and the filters and sums it meets make it closer.
double Session::white(uint64_t at) const {
  const uint64_t word = hr_philox64(key_, at, sample_);
  const uint64_t sum = (word & 0xFFFF) + ((word >> 16) & 0xFFFF) + ((word >> 32) & 0xFFFF) + (word >> 48);
  constexpr double kScale = 1.0 / 37837.2;  // the standard deviation of that sum
  return (static_cast<double>(sum) - 131070.0) * kScale;
}

// A tenth to three tenths of some seconds.
bool Session::lost(double seconds) const {
  constexpr double kMeanLoss = 0.2;
  const double second = std::floor(seconds);
  const auto i = static_cast<uint64_t>(second);
  if (uniform(key_, "lost"_site, i) >= options_.ik_failures / kMeanLoss) return false;
  const double length = between(0.1, 0.3, key_, "lost_length"_site, i);
  const double begin = second + (1.0 - length) * uniform(key_, "lost_begin"_site, i);
  return seconds >= begin && seconds < begin + length;
}

void Session::next(std::span<float> angles, std::span<float> emg) {
  const double seconds = static_cast<double>(sample_) / options_.sample_rate_hz;
  for (std::size_t k = 0; k < waves_.size(); ++k) {
    position_[k] = velocity_[k] = 0.0;
    for (const Wave& wave : waves_[k]) {
      const double turn = kTau * wave.frequency_hz * seconds + wave.phase;
      position_[k] += wave.amplitude * std::sin(turn);
      velocity_[k] += wave.amplitude * wave.frequency_hz / kTypical * std::cos(turn);
    }
  }
  hand_->angles(position_, angles);
  if (lost(seconds)) std::ranges::fill(angles, 0.0f);
  hand_->activity(position_, velocity_, signal_);
  for (std::size_t m = 0; m < signal_.size(); ++m) signal_[m] *= carriers_[m].next(white(site("carrier"_site, m)));

  const double hum = options_.sample_rate_hz > 100.0 ? 0.03 * std::sin(kTau * 50.0 * seconds) : 0.0;
  for (std::size_t c = 0; c < emg.size(); ++c) {
    const double* weights = electrodes_.data() + c * signal_.size();
    double sum = hum + options_.noise * white(site("skin"_site, c));
    for (std::size_t m = 0; m < signal_.size(); ++m) sum += weights[m] * signal_[m];
    emg[c] = static_cast<float>(sum);
  }
  ++sample_;
}

}  // namespace emg_hdf5
