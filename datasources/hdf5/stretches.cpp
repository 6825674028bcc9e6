#include "stretches.hpp"

#include <algorithm>

#include "integers.hpp"

namespace hdf5_source {

namespace {

std::string rows_text(const RowRange& rows) {
  return "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end - 1);
}

// Exclusive ends, as diffusion policy's replay buffers have them. Returns rows after the last.
uint64_t add_episodes(const sdk::Host& host, const Settings& settings, const Sequence& sequence, uint32_t number,
                      std::vector<Stretch>& all) {
  const std::string object = sequence.object(settings.episode_ends);
  const sdk::Array array = open_integers(host, sequence.file, object, "episode_ends");
  const std::vector<int64_t> ends = read_integers(array, 0, array.info().shape[0]);
  const auto bad = [&](uint64_t episode, const std::string& sentence) {
    throw sdk::Error(HR_DATA_CORRUPT, place_of(sequence.file, object) + " has " + std::to_string(ends[episode]) +
                                          " as end of episode " + std::to_string(episode) + sentence);
  };
  uint64_t begin = 0;
  for (uint64_t episode = 0; episode < ends.size(); ++episode) {
    if (ends[episode] <= static_cast<int64_t>(begin))
      bad(episode, ", which begins at row " + std::to_string(begin) + "; each end is the row after an episode's last");
    const auto end = static_cast<uint64_t>(ends[episode]);
    if (end > sequence.rows)
      bad(episode, ", but its fields have " + std::to_string(sequence.rows) + " rows; mend the file");
    all.push_back({number, {begin, end}, episode});
    begin = end;
  }
  return sequence.rows - begin;
}

}  // namespace

std::vector<Stretch> stretches_of(const sdk::Host& host, const Settings& settings,
                                  const std::vector<Sequence>& sequences) {
  std::vector<Stretch> all;
  uint64_t beyond = 0;
  for (uint32_t s = 0; s < sequences.size(); ++s) {
    if (settings.episode_ends.empty()) {
      all.push_back({s, {0, sequences[s].rows}, std::nullopt});
    } else {
      beyond += add_episodes(host, settings, sequences[s], s, all);
    }
  }
  if (all.empty()) {
    throw sdk::Error(HR_DATA_CORRUPT, "episode_ends: " + settings.episode_ends + " of " + settings.path.string() +
                                          " names no episode; mend the file");
  }
  if (beyond > 0)
    host.warn(std::to_string(beyond) + " rows lie after the last of " + settings.episode_ends + ": left out");
  return all;
}

std::string name_of(const Stretch& stretch, const Sequence& sequence, const std::filesystem::path& folder) {
  const std::string name = sequence.name(folder);
  if (stretch.episode) return name + ":episode " + std::to_string(*stretch.episode);
  if (stretch.length() == sequence.rows) return name;
  return name + ":" + rows_text(stretch.rows);
}

std::string episode_text(const Stretch& stretch) {
  return "episode " + std::to_string(stretch.episode.value_or(0)) + " (" + rows_text(stretch.rows) + ")";
}

}  // namespace hdf5_source
