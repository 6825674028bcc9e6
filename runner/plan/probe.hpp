// A probe: a short run of the experiment at a few micro-batches, and what the process held after each phase. The
// figures a plan is made from; they travel as JSON. This header is torch-free.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

struct Experiment;
struct RunData;

// In the order a run goes through them. Tensor memory is kept from one to the next, so that each starts with what the
// ones before it left.
inline constexpr std::array<std::string_view, 5> probe_phases = {"training", "optimizer", "evaluation", "epoch end",
                                                                 "checkpoint"};

struct ProbePoint {
  int64_t micro_batch = 0;
  std::array<int64_t, probe_phases.size()> held_bytes{};  // U after each phase less slots and caches; never falls
  int64_t least_bytes = 0;  // the same at its peak, without what allocators keep for the next step
};

// What one measured.
struct Probe {
  int64_t built_bytes = 0;         // U once the model is built
  int64_t base_bytes = 0;          // U after set-up, optimizer included
  std::vector<ProbePoint> points;  // by rising micro-batch; empty: not even the smallest went through
  std::string shortage;            // why it ended there; "" when nothing was short
  int64_t train_samples = 0, val_samples = 0;
  int64_t chunk_bytes = 0;           // of decoded chunks that a run comes to keep, where memory allows
  int64_t largest_chunk_bytes = 0;   // decoded, of those
  int64_t kept_bytes = 0;            // of the outputs of one sample, under metrics.mode = "full"
  std::vector<int64_t> field_bytes;  // of one sample, in the order of the slots
  std::string indivisible_because;   // why batches cannot be divided; "" where they can
  double seconds = 0.0;

  nlohmann::json json() const;
  static Probe from_json(const nlohmann::json& json);  // nlohmann::json::exception
};

// The words after `headroom-train` that probe the experiment of a RunData: "probe", its file, ...
using ProbeWords = std::vector<std::string>;

// The probe behind a plan: one that was kept for the same experiment, or a new one in a child process. They are kept in
// the user's cache folder, under a hash of everything that their figures depend on. `recompute`: kinds of the model's
// calls that are computed again in backward. `cached` is set where the probe was kept. A probe that memory cut short is
// not kept: tomorrow there may be more. Error: what ended the child. [control]
Probe find_probe(const RunData& data, const std::vector<std::string>& recompute, ProbeWords words, bool& cached);

// The probe itself, which `headroom-train probe` makes in a process of its own (probe_run.cpp). Sets up as a run does
// and goes through its phases at micro-batches 1, 2 and the largest of 4, 8 and 16 that is expected to stay below half
// of the room there is, on the costliest samples. The process's own limit is what memory.limit = "auto" would give it:
// it ends with what it knows, and is not killed. Its checkpoint goes to `folder`, which whoever started it removes.
// Error where even the set-up fails. [control]
Probe run_probe(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                const std::filesystem::path& folder);

}  // namespace headroom
