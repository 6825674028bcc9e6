// `headroom run --nproc N`: one run in N processes of this machine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

// Starts `program` with `words` once for each of `count` ranks and waits for all of them. Signals are passed on. Rank 0
// has our streams; what others say is shown where they fail in their own way. Where one of them ends before its time,
// those that have not ended by themselves ten seconds later are killed. Returns the run's exit code: 75 where a rank
// was killed, the lowest failing rank's own where one failed, otherwise that of rank 0. [control]
//
// `least` above 0: of train.elastic. Where a rank is killed after all have signed in (members.hpp), and at least so
// many are left, these go on without it. That is said in a line, and the first of them stands for rank 0.
int launch_ranks(const std::filesystem::path& program, const std::vector<std::string>& words, int count, int least = 0);

}  // namespace headroom
