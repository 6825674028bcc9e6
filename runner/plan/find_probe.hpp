// The probe behind a plan: one that was kept for the same experiment, or a new one in a child process.
#pragma once

#include <string>
#include <vector>

#include "plan/probe.hpp"
#include "train/run_data.hpp"

namespace headroom {

// The words after `headroom-train` that probe the experiment of a RunData: "probe", its file, ...
using ProbeWords = std::vector<std::string>;

// Probes are kept in the user's cache folder, under a hash of everything that their figures depend on. `recompute`:
// kinds of the model's calls that are computed again in backward. `cached` is set where the probe was kept. A probe
// that memory cut short is not kept: tomorrow there may be more. Error: what ended the child. [control]
Probe find_probe(const RunData& data, const std::vector<std::string>& recompute, ProbeWords words, bool& cached);

}  // namespace headroom
