// Reads samples into slots: the observation at a start, and the actions from there to the episode's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "episode.hpp"
#include "headroom/datasource.hpp"
#include "headroom/sdk/kept_open.hpp"
#include "statistics.hpp"

namespace dual_arm_hdf5 {

// Field numbers, in the order of DualArmSource::fields().
inline constexpr uint32_t kImageField = 0, kQposField = 1, kActionField = 2, kIsPadField = 3;

// What a source offers, resolved: fixed once the source is open, shared by its readers.
struct Selection {
  struct EpisodeFacts {
    std::filesystem::path file;
    std::string name;
    uint64_t steps = 0;
    bool simulated = false;
  };
  struct Split {
    std::string name;
    std::vector<uint64_t> episodes;      // numbers
    std::vector<uint64_t> first_sample;  // of each, and the end behind the last
  };
  std::vector<EpisodeFacts> episodes;
  std::vector<Split> splits;
  std::vector<std::string> cameras;
  FrameSize frame;
  uint64_t joints = 0, actions = 0, longest = 0;
  uint64_t samples_per_episode = 1;  // 0: every step is one
  Statistics qpos_statistics, action_statistics;

  uint64_t samples_of(uint64_t episode) const {
    return samples_per_episode > 0 ? samples_per_episode : episodes[episode].steps;
  }
};

// The step that a sample starts at. Drawn from the key where `draw`; else the same each time, spread over the episode.
uint64_t start_of(const Selection& selection, uint64_t episode, uint64_t sample, uint64_t key, bool draw);

// For one thread. Keeps the episodes it read last open.
class Reader {
 public:
  Reader(const sdk::Host& host, const Selection& selection) : host_(host), selection_(&selection) {}
  void read(const sdk::ReadRequest& request);

 private:
  const Episode& open(uint64_t number) {
    return open_.get(number, [&] { return opened(number); });
  }
  Episode opened(uint64_t number) const;
  void read_sample(const sdk::ReadRequest& request, uint64_t i);
  void read_actions(const sdk::ReadRequest& request, uint64_t i, uint64_t number, uint64_t start);

  sdk::Host host_;
  const Selection* selection_;
  sdk::KeptOpen<Episode> open_;
  FrameReader frames_;
};

// One episode, all of whose steps are samples. Move-only.
class RecordedEpisode {
 public:
  // `selection` has this episode alone, whose every step is a sample.
  RecordedEpisode(const sdk::Host& host, std::unique_ptr<const Selection> selection)
      : selection_(std::move(selection)), reader_(host, *selection_) {}
  uint64_t steps() const { return selection_->episodes.front().steps; }
  void read(const sdk::ReadRequest& request) { reader_.read(request); }

 private:
  std::unique_ptr<const Selection> selection_;
  Reader reader_;
};

}  // namespace dual_arm_hdf5
