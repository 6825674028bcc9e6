// What is right for a run of the kernel campaign.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

// How a run of the campaign went.
struct CampaignOutcome {
  int64_t peak_bytes = 0;  // of the same without a limit, whole
  int64_t room_bytes = 0;  // of the cgroup's limit, less neighbours, children and folders in memory
  bool others_press = false;  // something beside the run takes memory while it runs
  int exit_code = -1;
  std::optional<int> then_exit_code;  // of the evaluation or prediction after it
  int64_t oom_kills = 0;
  std::string err;
};

// Whether the room holds what the run needs and a tenth more, after the tenth that memory.limit leaves to the host.
bool must_finish(const CampaignOutcome& outcome);

// What was wrong; empty: nothing.
std::string complaint(const CampaignOutcome& outcome);

}  // namespace headroom
