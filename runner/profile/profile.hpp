// profile/: where the time and memory of a step go. Start here: Profile is the result. Torch-free.
//
// profile_run() (step_profile.hpp) runs the first steps of an experiment. A StepProfile measures the phases of the
// loop, and through OperatorTimes and PluginCallTimes what happens within them. A Trace keeps every span for a file.
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

// What a phase took, summed over all measured steps, or what the steps took. Everything but `ns` is of all threads of
// the process.
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
  Spent steps;                                 // the whole steps
  std::array<Spent, step_phase_count> phases;  // by StepPhase
  std::vector<OperatorTime> operators;         // by falling self time
  std::vector<PluginCallTime> plugin_calls;    // those on the step's thread first
  LoaderTimes reading;                         // by the threads that read ahead
  int64_t checkpoints = 0, checkpoint_ns = 0;  // also between steps and at the end
  int64_t limit_bytes = 0;                     // memory.limit; 0: off
  LedgerReading memory;                        // with peaks since the process began
  std::string trace;                           // its file; "": none
  int64_t left_out_of_trace = 0;               // operator calls beyond the limit, and spans that found no memory

  int64_t median_ns() const;             // of a step
  int64_t ns_outside_model() const;      // outside forward, backward and optimizer
  int64_t ns_outside_operators() const;  // the plugin's own kernels and the host

  // The whole profile. Times are milliseconds for each step; counts are for each step, too.
  nlohmann::json json() const;
  // As text, with at most `most_operators` operators.
  std::string text(size_t most_operators) const;
};

}  // namespace headroom
