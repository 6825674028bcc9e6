// Which rows belong to which split.
#pragma once

#include <string>
#include <vector>

#include "sequence.hpp"
#include "settings.hpp"
#include "stretches.hpp"

namespace hdf5_source {

struct SplitMembers {
  std::string name;
  std::vector<Stretch> stretches = {};
  bool cuts = false;  // some of them are parts of a sequence
};

// One split "all" where the settings define none. Throws HR_INVALID_ARGUMENT for a split that takes nothing or a part
// of an episode, and for rows that two of them take.
std::vector<SplitMembers> divide(const sdk::Host& host, const Settings& settings,
                                 const std::vector<Sequence>& sequences, const std::vector<Stretch>& stretches);

}  // namespace hdf5_source
