// datasources/dual_arm_hdf5/: dual-arm demonstrations with cameras in ALOHA's layout, for action-chunking policies.
// This is its front door; episode.hpp has the files, reader.hpp the reading, statistics.hpp and split.hpp the
// original's arithmetic, jpeg.hpp the frames, arms.hpp, scene.hpp and synth.cpp made data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headroom/datasource.hpp"
#include "reader.hpp"

namespace dual_arm_hdf5 {

class DualArmSource {
 public:
  static sdk::OptionList options();

  // Opens every episode once for its shapes, and reads all joint positions and actions for their statistics.
  DualArmSource(const sdk::Host& host, const sdk::Options& options);

  std::vector<sdk::Field> fields() const;
  std::vector<std::string> splits() const;
  uint64_t length(uint32_t split) const;
  std::vector<sdk::Group> groups(uint32_t split) const;  // the episodes
  std::vector<std::filesystem::path> files() const;
  bool augments() const { return selection_.samples_per_episode > 0; }

  Reader make_reader() const { return Reader(host_, selection_); }
  // One further episode, of the same robot; every step is a sample.
  RecordedEpisode open_recording(const std::filesystem::path& file) const;

  static sdk::OptionList synth_options();
  static void synthesise(const sdk::Host& host, const sdk::Options& options, const std::filesystem::path& folder);

 private:
  void add_episode(const std::filesystem::path& file);
  Selection::EpisodeFacts require_alike(const Episode& episode, const std::string& joints_remedy,
                                        const std::string& frames_remedy) const;
  void add_split(const std::string& name, std::vector<uint64_t> episodes);
  void measure();

  sdk::Host host_;
  Selection selection_;
};

}  // namespace dual_arm_hdf5
