// The rows that a sample stays in: a whole sequence, an episode of a flat buffer, or what a split takes of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sequence.hpp"
#include "settings.hpp"

namespace hdf5_source {

struct Stretch {
  uint32_t sequence = 0;
  RowRange rows;
  std::optional<uint64_t> episode;  // its number in the sequence, where episode_ends cut it

  uint64_t length() const { return rows.end - rows.begin; }
};

// In the order of the sequences, each cut at its episode_ends. Throws HR_DATA_CORRUPT for ends that do not rise, or lie
// beyond the rows.
std::vector<Stretch> stretches_of(const sdk::Host& host, const Settings& settings,
                                  const std::vector<Sequence>& sequences);

// "buffer:episode 3", "images:rows 0 to 49999"; a whole sequence has its own name.
std::string name_of(const Stretch& stretch, const Sequence& sequence, const std::filesystem::path& folder);

// "episode 3 (rows 20 to 29)"
std::string episode_text(const Stretch& stretch);

}  // namespace hdf5_source
