// Which sequences belong to which split.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "sequence.hpp"
#include "settings.hpp"

namespace hdf5_source {

struct SplitMembers {
  std::string name;
  std::vector<uint32_t> sequences;
};

// One split "all" where the settings define none. Throws HR_INVALID_ARGUMENT for a split that takes nothing, and for a
// sequence that two of them take.
std::vector<SplitMembers> divide(const sdk::Host& host, const Settings& settings,
                                 const std::vector<Sequence>& sequences);

}  // namespace hdf5_source
