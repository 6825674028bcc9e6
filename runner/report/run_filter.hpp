// Which runs of a list: 'val/loss < 0.1', 'peak_bytes <= 2 GiB', 'train.batch_size == 8', 'state != failed'.
#pragma once

#include <string>
#include <vector>

#include "report/run_facts.hpp"

namespace headroom {

class RunFilter {
 public:
  // Error(bad_input) for what is no comparison.
  explicit RunFilter(const std::string& text);
  bool holds(const RunFacts& run) const;  // a run without that key: only for !=

 private:
  std::string key_, operator_, text_;
  std::optional<double> number_;
};

// By a key: numbers as numbers, words as words, those without it last.
void sort_runs(std::vector<RunFacts>& runs, const std::string& key, bool descending);

}  // namespace headroom
