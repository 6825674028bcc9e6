// `headroom profile`: the first steps of an experiment, measured. Needs LibTorch.
#pragma once

#include <filesystem>

#include "profile/profile.hpp"
#include "train/train.hpp"

namespace headroom {

inline constexpr int64_t profile_warm_up_steps = 5;

struct ProfileRequest {
  TrainRequest run;  // a new one; whoever starts it removes `run.out` when it is over
  int64_t steps = 20;
  std::filesystem::path trace;  // file; empty: none
};

// Runs the experiment as train() would, over its data again where it has fewer steps, evaluates nothing and fills in
// `profile`. Not Exit::ok: stopped before so many steps by a signal, or because others took the memory; then `profile`
// stays empty. Errors as train(). [control]
Exit profile_run(ProfileRequest request, Profile& profile);

}  // namespace headroom
