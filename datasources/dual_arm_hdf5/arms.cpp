#include "arms.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>

#include "headroom/sdk/draws.hpp"

namespace dual_arm_hdf5 {

namespace {

using namespace headroom::sdk::literals;

constexpr double kUpper = 0.35, kLower = 0.35, kHand = 0.1;
constexpr Point kLeftBase{-0.5, 0.3, 0.1}, kRightBase{0.5, 0.3, 0.1};
constexpr Point kLeftHome{-0.25, 0.05, 0.25}, kRightHome{0.25, 0.05, 0.25};
constexpr Point kLeftMeets{-0.02, 0.3, 0.2}, kRightMeets{0.02, 0.3, 0.2};
constexpr double kTaken = 0.25, kLeaves = 0.3, kMeet = 0.5, kGiven = 0.57, kPlaced = 0.8, kReturns = 0.85;

Point base_of(Side side) { return side == Side::left ? kLeftBase : kRightBase; }
// Arms face each other.
double facing(Side side) { return side == Side::left ? 0.0 : std::numbers::pi; }

// From 0 to 1 with least jerk, 0 before `from` and 1 behind `to`.
double smooth(double progress, double from, double to) {
  const double u = std::clamp((progress - from) / (to - from), 0.0, 1.0);
  return u * u * u * (10.0 + u * (6.0 * u - 15.0));
}

struct Move {
  double from, to;
  Point target;
};

// Along the moves, each over an arc.
Point along(Point at, std::span<const Move> moves, double progress) {
  constexpr double arc = 0.06;
  for (const Move& move : moves) {
    const double s = smooth(progress, move.from, move.to);
    at = {at.x + s * (move.target.x - at.x), at.y + s * (move.target.y - at.y),
          at.z + s * (move.target.z - at.z) + arc * 4.0 * s * (1.0 - s)};
  }
  return at;
}

}  // namespace

ArmPoints points_of(Side side, const ArmJoints& joints) {
  const Point base = base_of(side);
  const double yaw = facing(side) + joints[0];
  const auto beyond = [&](const Point& from, double length, double pitch) {
    const double level = length * std::cos(pitch);
    return Point{from.x + level * std::cos(yaw), from.y + level * std::sin(yaw), from.z + length * std::sin(pitch)};
  };
  const Point elbow = beyond(base, kUpper, joints[1]);
  const Point wrist = beyond(elbow, kLower, joints[1] + joints[2]);
  return {base, elbow, wrist, beyond(wrist, kHand, joints[1] + joints[2] + joints[4])};
}

ArmJoints joints_to(Side side, const Point& tip, double gripper) {
  const Point base = base_of(side);
  const double x = tip.x - base.x, y = tip.y - base.y, z = tip.z + kHand - base.z;
  const double turn = side == Side::left ? 1.0 : -1.0;
  const double yaw = std::atan2(turn * y, turn * x), level = std::hypot(x, y);
  const double bend = (level * level + z * z - kUpper * kUpper - kLower * kLower) / (2.0 * kUpper * kLower);
  const double elbow = -std::acos(std::clamp(bend, -1.0, 1.0));
  const double shoulder =
      std::atan2(z, level) - std::atan2(kLower * std::sin(elbow), kUpper + kLower * std::cos(elbow));
  const double wrist = -std::numbers::pi / 2.0 - shoulder - elbow;
  return {yaw, shoulder, elbow, 0.0, wrist, -yaw, gripper};
}

Handover::Handover(uint64_t seed, uint64_t episode) {
  const uint64_t key = hr_sample_key(seed, 0, 0, episode);
  const auto place = [&](uint64_t site, double from, double to) {
    return from + (to - from) * headroom::sdk::uniform(key, site);
  };
  block_ = {place("block.x"_site, -0.3, -0.05), place("block.y"_site, 0.15, 0.45), 0.02};
  mark_ = {place("mark.x"_site, 0.05, 0.3), place("mark.y"_site, 0.15, 0.45), 0.02};
}

ArmJoints Handover::target(Side side, double progress) const {
  if (side == Side::left) {
    const Move moves[] = {{0.0, kTaken, block_}, {kLeaves, kMeet, kLeftMeets}, {kGiven, kPlaced, kLeftHome}};
    const double gripper = 1.0 - smooth(progress, kTaken, kLeaves) + smooth(progress, kMeet, kGiven);
    return joints_to(side, along(kLeftHome, moves, progress), gripper);
  }
  const Move moves[] = {{0.0, kMeet, kRightMeets}, {kGiven, kPlaced, mark_}, {kReturns, 1.0, kRightHome}};
  const double gripper = 1.0 - smooth(progress, kMeet, kGiven) + smooth(progress, kPlaced, kReturns);
  return joints_to(side, along(kRightHome, moves, progress), gripper);
}

Point Handover::block(double progress, const Point& left_tip, const Point& right_tip) const {
  if (progress < kLeaves) return block_;
  if (progress < kGiven) return left_tip;
  return progress < kReturns ? right_tip : mark_;
}

}  // namespace dual_arm_hdf5
