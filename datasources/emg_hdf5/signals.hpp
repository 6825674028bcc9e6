// Made signals from which a model can learn: joint angles follow a few smooth latent movements, a pair of muscles works
// each movement with its position and velocity, and every electrode picks up the muscles near it as noise that their
// activity modulates.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace emg_hdf5 {

struct SignalOptions {
  uint64_t seed = 0;
  uint64_t channels = 16, joints = 20;
  double sample_rate_hz = 2000.0;
  double noise = 0.1;        // standard deviation of each channel's own noise; the muscles' part is about 1
  double ik_failures = 0.0;  // fraction of time whose angles are lost: all zero
};

// What all sessions share: which movement turns which joint, and where the muscles lie under the electrodes.
class Hand {
 public:
  explicit Hand(const SignalOptions& options);
  std::size_t movements() const { return position_gain_.size(); }
  std::size_t muscles() const { return 2 * movements(); }

  // Radians, from a position of about -2..2 for each movement.
  void angles(std::span<const double> position, std::span<float> out) const;
  // Activity >= 0 of each muscle; velocities in units of the position's typical one.
  void activity(std::span<const double> position, std::span<const double> velocity, std::span<double> out) const;
  // [channels, muscles]; `rotation` (rad) is how far the band sits off its place, `gain` how well it sits.
  std::vector<double> electrodes(double rotation, double gain) const;

 private:
  struct Joint {
    double rest, range;
    std::vector<double> movement;  // weight of each
  };
  uint64_t channels_;
  std::vector<Joint> joints_;
  std::vector<double> position_gain_, velocity_gain_, muscle_place_;
};

// A band-pass of white noise with standard deviation 1: what the skin passes of a muscle's firing.
class Carrier {
 public:
  explicit Carrier(double sample_rate_hz);
  double next(double white);

 private:
  struct State {
    double high = 0.0, input = 0.0, x1 = 0.0, x2 = 0.0, y1 = 0.0, y2 = 0.0;
  };
  double filter(double white, State& state) const;
  double high_ = 0.0, gain_ = 1.0;
  std::array<double, 5> low_{};  // b0 b1 b2 a1 a2
  State state_;
};

// One session, made in order in constant memory. The same options, user and session give the same samples.
class Session {
 public:
  Session(const Hand& hand, const SignalOptions& options, uint64_t user, uint64_t session);
  // The next sample: angles [joints] and emg [channels].
  void next(std::span<float> angles, std::span<float> emg);

 private:
  struct Wave {
    double frequency_hz, phase, amplitude;
  };
  double white(uint64_t site) const;
  bool lost(double seconds) const;

  const Hand* hand_;
  SignalOptions options_;
  uint64_t key_;
  uint64_t sample_ = 0;
  std::vector<std::vector<Wave>> waves_;  // of each movement
  std::vector<double> electrodes_;
  std::vector<Carrier> carriers_;  // of each muscle
  std::vector<double> position_, velocity_, signal_;
};

}  // namespace emg_hdf5
