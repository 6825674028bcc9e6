// The probe itself: what `headroom-train probe` does in a process of its own. Needs LibTorch.
#pragma once

#include <filesystem>
#include <vector>

#include "config/experiment.hpp"
#include "plan/probe.hpp"

namespace headroom {

// Sets up as a run does and goes through its phases at micro-batches 1, 2 and the largest of 4, 8 and 16 that is
// expected to stay below half of the room there is, on the costliest samples. The process's own limit is what
// memory.limit = "auto" would give it: it ends with what it knows, and is not killed. Its checkpoint goes to `folder`,
// which whoever started it removes. Error where even the set-up fails. [control]
Probe run_probe(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                const std::filesystem::path& folder);

}  // namespace headroom
