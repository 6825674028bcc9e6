// What the joints of an episode are called and measured in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "headroom/datasource.hpp"
#include "statistics.hpp"

namespace dual_arm_hdf5 {

namespace sdk = headroom::sdk;

// A channel for each joint, with the statistics its values are standardised with. Names are those of the attribute
// `joint_names` (["a", "b", ...]) of the file's root, else ALOHA's where there are 14, else none.
std::vector<sdk::Channel> joint_channels(const sdk::Host& host, const std::filesystem::path& file,
                                         const Statistics& statistics);

}  // namespace dual_arm_hdf5
