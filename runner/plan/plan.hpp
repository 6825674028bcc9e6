// A plan: a table over batch x accumulation x micro-batch with the window size fixed, which rows fit the limit, and
// what to change. Torch-free.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "config/experiment.hpp"
#include "memory/limits.hpp"
#include "plan/fit.hpp"

namespace headroom {

struct PlanRow {
  Setting setting;
  Prediction prediction;
  bool fits = false;   // with reading ahead and caches
  bool works = false;  // without them, as when memory runs short
};

struct Plan {
  MemoryLimit limit;
  std::vector<PlanRow> rows;  // by falling batch, then falling micro-batch
  // The experiment as written. For micro_batch "auto": the largest that fits with one batch at a time, or 1. A larger
  // micro-batch gains more speed than reading ahead does.
  PlanRow as_written;
  std::optional<PlanRow> recommended;  // with the same window; nullopt: nothing fits
  int64_t base_bytes = 0, kept_samples = 0, kept_bytes_per_sample = 0;
  std::string indivisible_because;
  std::vector<std::string> recompute;  // kinds of the model's calls that are recomputed in backward
  bool micro_batch_is_auto = true, cached = false;
  double probe_seconds = 0.0;

  bool something_fits() const { return recommended.has_value(); }
  // The least memory that the run as written can run with, whatever the limit is. An automatic micro-batch counts with
  // its smallest size.
  int64_t least_bytes() const;
  nlohmann::json json() const;
  // For people: the table and the recommendation.
  std::string text(const Experiment& experiment) const;
  // Why the run does not fit as written, and a setting that does. Where none does: what the smallest setting needs,
  // part by part, and what would make room.
  std::string refusal(const Experiment& experiment) const;
};

Plan make_plan(const Experiment& experiment, const Fit& fit, const MemoryLimit& limit);

// The micro-batches that halving leads to: batch_size first, 1 last.
std::vector<int64_t> halvings(int64_t batch_size);

}  // namespace headroom
