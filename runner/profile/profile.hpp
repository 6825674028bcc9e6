// profile/: where a step's time and memory go. Start here: what a profile found. Torch-free.
//
// profile_run() (step_profile.hpp) runs the first steps of an experiment. StepProfile watches them: phases of the loop,
// and through OperatorTimes and PluginCallTimes what they consist of. A Trace keeps each span for a file.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "data/loader.hpp"
#include "memory/ledger.hpp"
#include "profile/operators.hpp"
#include "profile/plugin_calls.hpp"
#include "train/step_watch.hpp"

namespace headroom {

std::string_view step_phase_name(StepPhase phase);

// What went by: a phase of all measured steps, or the steps themselves. Of all threads of the process, but for `ns`.
struct Spent {
  int64_t ns = 0, cpu_ns = 0;
  int64_t minor_faults = 0, major_faults = 0;
  int64_t operators_ns = 0;  // within LibTorch's operators

  Spent& operator+=(const Spent& other);
  friend Spent operator-(Spent a, const Spent& b);
};

// Sums are over all measured steps.
struct Profile {
  std::string experiment, model, source, device;
  int threads = 0;
  int64_t warm_up_steps = 0;
  std::vector<int64_t> step_ns;  // of each measured step
  int64_t samples = 0;
  int64_t micro_batch = 0;                     // in use at the end
  Spent steps;                                 // from a step's beginning to its end, all together
  std::array<Spent, step_phase_count> phases;  // by StepPhase
  std::vector<OperatorTime> operators;         // by falling self time
  std::vector<PluginCallTime> plugin_calls;    // those in the step first
  LoaderTimes reading;                         // by the threads that read ahead
  int64_t checkpoints = 0, checkpoint_ns = 0;  // in steps, between them and at the end
  int64_t limit_bytes = 0;                     // memory.limit; 0: off
  LedgerReading memory;                        // its peaks are those since the process began
  std::string trace;                           // its file; "": none
  int64_t left_out_of_trace = 0;               // calls of operators, and what there was no memory for

  int64_t median_ns() const;             // of a step
  int64_t ns_outside_model() const;      // neither forward nor backward nor optimizer
  int64_t ns_outside_operators() const;  // the plugin's own kernels, and the host

  // All of it. Times are milliseconds a step, counts are a step's.
  nlohmann::json json() const;
  // For people, with at most so many operators.
  std::string text(size_t most_operators) const;
};

}  // namespace headroom
