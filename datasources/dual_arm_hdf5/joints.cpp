#include "joints.hpp"

namespace dual_arm_hdf5 {

namespace {

std::vector<std::string> aloha_names() {
  std::vector<std::string> names;
  for (const char* side : {"left_", "right_"}) {
    for (const char* joint : {"waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"})
      names.push_back(std::string(side) + joint);
  }
  return names;
}

}  // namespace

Joints joints_of(const sdk::Host& host, const std::filesystem::path& file) {
  return {host.attribute_names(file, "/", "joint_names").value_or(aloha_names()),
          host.attribute_names(file, "/", "joint_units").value_or(std::vector<std::string>())};
}

std::vector<sdk::Channel> joint_channels(Joints joints, const Statistics& statistics) {
  const std::size_t count = statistics.mean.size();
  if (joints.names.size() != count) joints.names.assign(count, "");
  if (joints.units.size() == 1) joints.units.assign(count, joints.units.front());
  if (joints.units.size() != count) {
    joints.units.clear();
    // A gripper is closed at 0 and open at 1.
    for (const std::string& name : joints.names) joints.units.push_back(name.ends_with("gripper") ? "opening" : "rad");
  }
  std::vector<sdk::Channel> channels(count);
  for (std::size_t j = 0; j < count; ++j)
    channels[j] = {joints.names[j], joints.units[j], statistics.mean[j], statistics.std[j]};
  return channels;
}

}  // namespace dual_arm_hdf5
