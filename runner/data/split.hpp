// Which samples belong to train, val and test. A source that offers splits keeps them; otherwise the host divides its
// groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "plugins/source.hpp"

namespace headroom {

// A subset of one source split, as runs of neighbouring samples: O(groups) memory. Immutable, [any].
class Split {
 public:
  Split() = default;  // empty
  Split(std::string name, uint32_t source_split, std::vector<Group> groups);
  const std::string& name() const { return name_; }
  uint32_t source_split() const { return source_split_; }
  uint64_t length() const { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<Group>& groups() const { return groups_; }
  uint64_t source_index(uint64_t i) const;  // i < length()

 private:
  std::string name_;
  uint32_t source_split_ = 0;
  std::vector<Group> groups_;   // in source order
  std::vector<uint64_t> ends_;  // running total of counts
};

struct Splits {
  Split train, val, test;  // empty where there is none
  const Split* find(const std::string& name) const;
};

// A group never crosses splits: groups are shuffled by split.seed and dealt until each fraction of the *samples* is
// met; every split with a fraction above 0 gets at least one group when there are enough. data.split on a source with
// splits of its own is an Error(bad_input), as are too few groups and an empty training split. max_groups bounds the
// groups used (the first ones of each split by that same shuffle).
Splits divide(const Source& source, const DataSection& data);

}  // namespace headroom
