// Small rendered cameras: a table with a mark, a block and two arms, drawn with soft edges.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "arms.hpp"

namespace dual_arm_hdf5 {

struct Scene {
  ArmPoints left, right;
  double left_gripper = 1.0, right_gripper = 1.0;
  Point block, mark;
};

inline constexpr const char* kViews[] = {"cam_high", "cam_low", "cam_left_wrist", "cam_right_wrist"};

// Draws view number `view` of kViews into pixels [height, width, 3].
void draw(const Scene& scene, uint64_t view, uint64_t height, uint64_t width, std::span<uint8_t> pixels);

}  // namespace dual_arm_hdf5
