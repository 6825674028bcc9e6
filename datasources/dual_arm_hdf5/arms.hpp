// The made task: the left arm takes a block from the table and hands it to the right arm, which puts it on a mark.
// Joint targets follow from where block and mark lie, so that a policy must look. Lengths in metres, angles in radians;
// x to the right, y away from the viewer, z up.
#pragma once

#include <array>
#include <cstdint>

namespace dual_arm_hdf5 {

struct Point {
  double x = 0.0, y = 0.0, z = 0.0;
};

// waist, shoulder, elbow, forearm_roll, wrist_angle, wrist_rotate; gripper from 0 (closed) to 1 (open).
inline constexpr std::size_t kArmJoints = 7;
using ArmJoints = std::array<double, kArmJoints>;
enum class Side { left, right };

struct ArmPoints {
  Point base, elbow, wrist, tip;
};
ArmPoints points_of(Side side, const ArmJoints& joints);

// Joints that bring the tip to a point, the gripper pointing down.
ArmJoints joints_to(Side side, const Point& tip, double gripper);

// Where things lie in one episode, and what the demonstrator commands.
class Handover {
 public:
  Handover(uint64_t seed, uint64_t episode);

  ArmJoints target(Side side, double progress) const;  // progress: 0 to 1 over the episode
  Point block(double progress, const Point& left_tip, const Point& right_tip) const;
  const Point& mark() const { return mark_; }

 private:
  Point block_, mark_;
};

}  // namespace dual_arm_hdf5
