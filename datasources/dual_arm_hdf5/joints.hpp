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

// Those of the attribute `joint_names` of the file's root, a list of strings or one string (["a", "b", ...]); else
// ALOHA's 14.
std::vector<std::string> joint_names(const sdk::Host& host, const std::filesystem::path& file);

// A channel for each joint, with the statistics its values are standardised with; without a name where there are not as
// many names.
std::vector<sdk::Channel> joint_channels(std::vector<std::string> names, const Statistics& statistics);

}  // namespace dual_arm_hdf5
