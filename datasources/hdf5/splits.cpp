#include "splits.hpp"

#include <algorithm>

#include "glob.hpp"

namespace hdf5_source {

namespace {

bool takes(const Settings& settings, const SplitSettings& split, const Sequence& sequence) {
  return std::ranges::any_of(
      split.files, [&](const std::string& pattern) { return matches_below(settings.path, pattern, sequence.file); });
}

}  // namespace

std::vector<SplitMembers> divide(const sdk::Host& host, const Settings& settings,
                                 const std::vector<Sequence>& sequences) {
  std::vector<SplitMembers> result;
  std::vector<std::string> taken_by(sequences.size());
  for (const SplitSettings& split : settings.splits) {
    SplitMembers& members = result.emplace_back(SplitMembers{split.name, {}});
    for (uint32_t i = 0; i < sequences.size(); ++i) {
      if (!takes(settings, split, sequences[i])) continue;
      if (!taken_by[i].empty()) {
        sdk::invalid(sequences[i].name(settings.path) + " is in the splits '" + taken_by[i] + "' and '" + split.name +
                     "'; a sequence belongs to one");
      }
      taken_by[i] = split.name;
      members.sequences.push_back(i);
    }
    if (members.sequences.empty())
      sdk::invalid("split '" + split.name + "' takes none of the " + std::to_string(sequences.size()) +
                   " sequences of " + settings.path.string());
  }
  if (settings.splits.empty()) {
    SplitMembers& all = result.emplace_back(SplitMembers{"all", {}});
    for (uint32_t i = 0; i < sequences.size(); ++i) all.sequences.push_back(i);
    return result;
  }
  const auto left = std::ranges::count(taken_by, "");
  if (left > 0) {
    host.warn(std::to_string(left) + " of " + std::to_string(sequences.size()) + " sequences of " +
              settings.path.string() + " are in no split: left out");
  }
  return result;
}

}  // namespace hdf5_source
