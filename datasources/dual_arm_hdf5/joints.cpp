#include "joints.hpp"

namespace dual_arm_hdf5 {

namespace {

std::vector<std::string> quoted_words(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t begin = text.find('"'); begin != std::string::npos;) {
    const std::size_t end = text.find('"', begin + 1);
    if (end == std::string::npos) break;
    words.push_back(text.substr(begin + 1, end - begin - 1));
    begin = text.find('"', end + 1);
  }
  return words;
}

std::vector<std::string> aloha_names() {
  std::vector<std::string> names;
  for (const char* side : {"left_", "right_"}) {
    for (const char* joint : {"waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"})
      names.push_back(std::string(side) + joint);
  }
  return names;
}

}  // namespace

std::vector<std::string> joint_names(const sdk::Host& host, const std::filesystem::path& file) {
  const auto strings = host.attribute_strings(file, "/", "joint_names");
  if (!strings) return aloha_names();
  const bool is_written_list = strings->size() == 1 && strings->front().find('"') != std::string::npos;
  return is_written_list ? quoted_words(strings->front()) : *strings;
}

std::vector<sdk::Channel> joint_channels(std::vector<std::string> names, const Statistics& statistics) {
  const std::size_t count = statistics.mean.size();
  if (names.size() != count) names.assign(count, "");
  std::vector<sdk::Channel> channels(count);
  for (std::size_t j = 0; j < count; ++j) {
    // 0: closed, 1: open.
    const bool gripper = names[j].ends_with("gripper");
    channels[j] = {names[j], gripper ? "opening" : "rad", statistics.mean[j], statistics.std[j]};
  }
  return channels;
}

}  // namespace dual_arm_hdf5
