// Names and units of an episode's joints.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "statistics.hpp"

namespace dual_arm_hdf5 {

namespace sdk = headroom::sdk;

struct Joints {
  std::vector<std::string> names;  // of the attribute `joint_names` of the file's root; else ALOHA's 14
  std::vector<std::string> units;  // of the attribute `joint_units`; else a gripper's is "opening", any other's "rad"
};

// Each attribute is a list of strings or one string that is a written list (["a", "b", ...]).
Joints joints_of(const sdk::Host& host, const std::filesystem::path& file);

// A channel for each joint, with the statistics its values are standardised with; without names where there are not as
// many of them, and with units by name where there are not as many units.
std::vector<sdk::Channel> joint_channels(Joints joints, const Statistics& statistics);

}  // namespace dual_arm_hdf5
