// Probes are kept in the user's cache folder, under a hash of everything that their figures depend on.
#pragma once

#include <optional>
#include <string>

#include "plan/probe.hpp"
#include "train/run_data.hpp"

namespace headroom {

// What was probed, as far as memory can tell: the experiment without the lengths of a run, without batch size,
// accumulation and memory limit (a plan computes with those), with the plugins' files, LibTorch, threads and machine.
// `recompute`: kinds of the model's calls that are computed again.
std::string plan_key(const RunData& data, const std::vector<std::string>& recompute);

std::optional<Probe> kept_probe(const std::string& key);
void keep_probe(const std::string& key, const Probe& probe);

}  // namespace headroom
