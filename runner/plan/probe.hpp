// What a probe measured: a short run of the experiment at a few micro-batches, and what the process held after each
// phase. The figures a plan is made from; they travel as JSON. Torch-free.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// In the order a run goes through them. Tensor memory is kept from one to the next, so that each starts with what the
// ones before it left.
inline constexpr std::array<std::string_view, 5> probe_phases = {"training", "optimizer", "evaluation", "epoch end",
                                                                 "checkpoint"};

struct ProbePoint {
  int64_t micro_batch = 0;
  std::array<int64_t, probe_phases.size()> held_bytes{};  // U after each phase less slots and caches; never falls
  int64_t least_bytes = 0;  // the same at its peak, without what allocators keep for the next step
};

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

}  // namespace headroom
