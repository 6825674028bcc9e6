// How much memory there is for trials.
#pragma once

#include <cstdint>
#include <string>

namespace headroom {

// What one trial may plan with: `limit` as decide_limit() takes it, with nothing of the sweep's running. 0: no limit.
int64_t largest_trial_bytes(const std::string& limit);

// What is free now for one more, after `expected_bytes` that trials just started have not reserved yet. INT64_MAX where
// nothing can be read.
int64_t free_for_trials(int64_t expected_bytes);

// memory.limit of a trial with a planned peak: some more, for what a plan cannot see, but at most `largest_bytes`
// (0: no bound).
int64_t trial_limit_bytes(int64_t peak_bytes, int64_t largest_bytes);

}  // namespace headroom
