// `headroom run --nproc N`: one run in N processes of this machine.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace headroom {

// Of a run that goes on where one of its processes is killed (train.elastic).
struct Elasticity {
  int least = 0;     // so many have to be left; 0: the run ends with the first that is killed
  int restarts = 0;  // of killed processes, in all
  // The words that resume the run of that folder.
  std::function<std::vector<std::string>(const std::filesystem::path& run)> resuming_words = {};
};

// Starts `program` with `words` once for each of `count` ranks and waits for all of them. Signals are passed on. Rank 0
// has our streams; what others say is shown where they fail in their own way. Where one of them ends before its time,
// those that have not ended by themselves ten seconds later are killed. Returns the run's exit code: 75 where a rank
// was killed, the lowest failing rank's own where one failed, otherwise that of rank 0. [control]
//
// Where a rank of an elastic run is killed after all have signed in (members.hpp), and enough are left, these go on
// without it. That is said in a line, and the first of them stands for rank 0. Another process is started in its place
// while there are `restarts`; the others take it in between two windows, once it is ready. One that ends before that
// is said, and changes nothing.
int launch_ranks(const std::filesystem::path& program, const std::vector<std::string>& words, int count,
                 const Elasticity& elasticity = {});

}  // namespace headroom
