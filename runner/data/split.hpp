// Which samples belong to train, val and test. Where a source has splits of its own those are used; otherwise the host
// divides the source's groups.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/source.hpp"

namespace headroom {

// Some groups of one source split. Takes memory for each group, none for a sample. Immutable, [any].
class Split {
 public:
  Split() = default;  // empty
  Split(std::string name, uint32_t source_split, std::vector<Group> groups);
  const std::string& name() const { return name_; }
  uint32_t source_split() const { return source_split_; }
  uint64_t length() const { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<Group>& groups() const { return groups_; }
  // The source's index of this split's sample `i`. REQUIRES i < length().
  uint64_t source_index(uint64_t i) const;
  // "sample 17 of split 'train', group 'rec_3'", by the source's index.
  std::string place_of(uint64_t source_index) const;

 private:
  std::string name_;
  uint32_t source_split_ = 0;
  std::vector<Group> groups_;   // in source order
  std::vector<uint64_t> ends_;  // running total of counts
};

struct Splits {
  Split train, val, test;  // empty where there is none
  // The split of that name; NULL for any other name than these three.
  const Split* find(const std::string& name) const;
  // splits.json of a run: {"format": 1, "val": {"samples", "groups", "names": of the first 10,000 groups}, ...}, for
  // each split that has groups.
  nlohmann::json json() const;
};

// Divides whole groups: a group (a recording, a clip) never crosses splits. Groups are shuffled by data.split.seed, and
// each goes to the split that lacks most of its share of the *samples*; every split with a share above 0 gets at least
// one. data.max_groups keeps the first groups of each split in that shuffle. Error(bad_input) for data.split on a
// source with splits of its own, for fewer groups than splits, and for an empty training split.
Splits divide(const Source& source, const DataSection& data);

}  // namespace headroom
