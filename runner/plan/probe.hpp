// A probe: a short run of the experiment at a few micro-batches, and what the process held after each phase. A plan is
// computed from these figures, which are passed between processes as JSON. This header is torch-free.
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

// The phases in the order of a run. Tensor memory is kept from one phase to the next, so each starts with what the
// earlier ones left.
inline constexpr std::array<std::string_view, 5> probe_phases = {"training", "optimizer", "evaluation", "epoch end",
                                                                 "checkpoint"};

struct ProbePoint {
  int64_t micro_batch = 0;
  // U after each phase, less slots, caches, what reads decode in and child processes; never decreases.
  std::array<int64_t, probe_phases.size()> held_bytes{};
  int64_t least_bytes = 0;  // the same at its peak, without what allocators keep for reuse
  // Tensors at the peak of a window and of an evaluation; 0: not measured, as on a GPU.
  int64_t training_activation_bytes = 0, evaluation_activation_bytes = 0;
};

// The figures of a probe.
struct Probe {
  int64_t built_bytes = 0;         // U once the model is built
  int64_t base_bytes = 0;          // U between windows, gradients and optimizer included; without child processes
  std::vector<ProbePoint> points;  // by rising micro-batch; empty: not even the smallest fitted
  std::string shortage;            // why it ended early; "" when memory sufficed
  int64_t train_samples = 0, val_samples = 0;
  int64_t chunk_bytes = 0;           // of decoded chunks that a run will keep, where memory allows
  int64_t largest_chunk_bytes = 0;   // decoded, of those
  int64_t reader_bytes = 0;          // the most that one thread decodes in
  int64_t worker_bytes = 0;          // the most that a child process holds, as readers have them; 0: none
  bool shares_workers = false;       // among training and evaluation; else each thread that reads has its own
  int64_t kept_bytes = 0;            // of the outputs of one sample, under metrics.mode = "full"
  std::vector<int64_t> field_bytes;  // of one sample, in the order of the slots
  std::string indivisible_because;   // why batches cannot be divided; "" where they can
  double seconds = 0.0;

  nlohmann::json json() const;
  static Probe from_json(const nlohmann::json& json);  // nlohmann::json::exception
};

// The arguments of `headroom-train` that probe the experiment of a RunData: "probe", its file, ...
using ProbeWords = std::vector<std::string>;

// Finds the probe of a plan: a kept one of the same experiment, or a new one from a child process. Probes are kept in
// the user's cache folder, under a hash of everything that their figures depend on. `recompute`: kinds of the model's
// calls that are recomputed in backward. Sets `cached` where it found a kept one. A probe that ran out of memory is not
// kept, because there may be more later. Error: what ended the child. [control]
Probe find_probe(const RunData& data, const std::vector<std::string>& recompute, ProbeWords words, bool& cached);

// Runs a probe; `headroom-train probe` calls it in a process of its own (probe_run.cpp). Sets up like a run, then goes
// through its phases on the costliest samples, at micro-batches 1, 2 and the largest of 4, 8 and 16 that is expected to
// need less than half of the available memory. The process keeps to the limit that memory.limit = "auto" would give, so
// it returns what it measured instead of being killed. Its checkpoint is written to `folder`, which the caller removes.
// Error where even the set-up fails. [control]
Probe run_probe(const Experiment& experiment, const std::vector<std::filesystem::path>& plugin_dirs,
                const std::filesystem::path& folder);

}  // namespace headroom
