// The sums of a window or an evaluation, of all processes of a run together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/metrics.hpp"

namespace headroom {

class RankGroup;

// Exact, for the same machine type. from_bytes() makes `sums`, of the same metrics and outputs, what was written.
std::string to_bytes(StepSums& sums);
void from_bytes(std::string_view bytes, StepSums& sums);

// The shares of all ranks, as each of them has told of its own.
struct RankShares {
  int missing = -1;                // a rank that could not do its share, so that nobody's counts; -1: none
  int64_t samples = 0;             // of all shares
  std::vector<std::string> notes;  // of each
  std::vector<std::string> bytes;  // to_bytes() of each, in the order of ranks
};

// Called by all ranks. `sums` of this rank's share; NULL: it could not do it. `note`: what else the others are told.
RankShares gather_shares(RankGroup& group, StepSums* sums, int64_t samples, std::string_view note = "");

// Makes `sums` those of all ranks, added in their order: the same bits on each of them. `scratch` is of the same kind.
// REQUIRES that none is missing.
void add_up(const RankShares& shares, StepSums& sums, StepSums& scratch);

}  // namespace headroom
