// That all ranks of a run run the same thing, before its first step.
#pragma once

#include <string>
#include <vector>

#include "ranks/group.hpp"

namespace headroom {

struct Fact {
  std::string name;   // "the experiment"
  std::string value;  // a digest, a version, or text in lines
};

// Error(bad_input), the same sentence on all ranks, where a fact is another one elsewhere than on rank 0. It names the
// fact, the first rank and host that differ, and what they have: of a text the first line that is another one.
// Nothing of one that comes back: it compares itself with the state that it is handed.
void require_agreement(RankGroup& group, const std::vector<Fact>& facts);

}  // namespace headroom
