// A plan: the table over batch x accumulation x micro-batch that keeps the window, what fits the limit, and what to
// change. Torch-free.
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
  bool fits = false;   // with all that is read ahead and cached
  bool works = false;  // where that is given up as memory runs short
};

struct Plan {
  MemoryLimit limit;
  std::vector<PlanRow> rows;  // by falling batch, then falling micro-batch
  // micro_batch "auto": the largest that fits with one batch at a time, for what is read ahead buys less than a larger
  // micro-batch does; or 1.
  PlanRow as_written;
  std::optional<PlanRow> recommended;  // keeps the window; nullopt: nothing fits
  int64_t base_bytes = 0, kept_samples = 0, kept_bytes_per_sample = 0;
  std::string indivisible_because;
  std::vector<std::string> recompute;  // kinds of the model's calls that are computed again in backward
  bool micro_batch_is_auto = true, cached = false;
  double probe_seconds = 0.0;

  bool something_fits() const { return recommended.has_value(); }
  // Without which the run as written does not run at all: of an automatic micro-batch at the smallest that it may come
  // to, whatever the limit is.
  int64_t least_bytes() const;
  nlohmann::json json() const;
  // For people: the table and the recommendation.
  std::string text(const Experiment& experiment) const;
  // Why it does not fit as written, and the setting that does; where none does, what the smallest needs, part by part,
  // and what would make room.
  std::string refusal(const Experiment& experiment) const;
};

Plan make_plan(const Experiment& experiment, const Fit& fit, const MemoryLimit& limit);

// The micro-batches a run may come to by halving: batch_size first, 1 last.
std::vector<int64_t> halvings(int64_t batch_size);

}  // namespace headroom
