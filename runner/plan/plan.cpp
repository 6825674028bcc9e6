#include "plan/plan.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "memory/budget.hpp"

namespace headroom {

namespace {

// Powers of two that divide the window, the batch as it is written, and the window itself.
std::vector<int64_t> batches_of(int64_t window, int64_t written) {
  std::vector<int64_t> batches = {written, window};
  for (int64_t batch = 1; batch <= window; batch *= 2) {
    if (window % batch == 0) batches.push_back(batch);
  }
  std::sort(batches.begin(), batches.end(), std::greater<>());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

nlohmann::json row_json(const PlanRow& row) {
  nlohmann::json phases;
  for (size_t i = 0; i < probe_phases.size(); ++i) phases[std::string(probe_phases[i])] = row.prediction.phase_bytes[i];
  return {{"batch_size", row.setting.batch_size},
          {"gradient_accumulation_steps", row.setting.accumulation},
          {"micro_batch", row.setting.micro_batch},
          {"predicted_peak_bytes", row.prediction.peak_bytes},
          {"work_bytes", row.prediction.work_bytes},
          {"least_bytes", row.prediction.least_bytes},
          {"largest_phase", probe_phases[row.prediction.largest_phase]},
          {"phase_bytes", phases},
          {"fits", row.fits},
          {"works", row.works}};
}

class Planner {
 public:
  Planner(const Experiment& experiment, const Fit& fit, const MemoryLimit& limit)
      : train_(experiment.train), fit_(fit), limit_(limit) {}

  Plan make() const {
    Plan plan;
    plan.limit = limit_;
    plan.indivisible_because = fit_.probe().indivisible_because;
    plan.base_bytes = fit_.probe().base_bytes;
    plan.kept_bytes_per_sample = fit_.probe().kept_bytes;
    plan.kept_samples = fit_.probe().train_samples + fit_.probe().val_samples;
    plan.micro_batch_is_auto = train_.micro_batch == 0 && plan.indivisible_because.empty();
    plan.probe_seconds = fit_.probe().seconds;
    // Of a batch that cannot be divided another size is another mathematics: only the written one is compared.
    for (const int64_t batch : plan.indivisible_because.empty() ? batches_of(window(), train_.batch_size)
                                                                : std::vector<int64_t>{train_.batch_size}) {
      for (const int64_t micro_batch : plan.indivisible_because.empty() ? halvings(batch) : std::vector<int64_t>{batch})
        plan.rows.push_back(row(batch, micro_batch));
    }
    plan.as_written = as_written(plan);
    plan.recommended = recommended(plan);
    return plan;
  }

 private:
  int64_t window() const { return train_.batch_size * train_.gradient_accumulation_steps; }

  PlanRow row(int64_t batch, int64_t micro_batch) const {
    const Setting setting{batch, window() / batch, micro_batch};
    const Prediction prediction = fit_.predict(setting);
    return {setting, prediction, fits(prediction.peak_bytes), fits(prediction.least_bytes)};
  }

  // The cushion below a limit stays free (memory/budget.hpp).
  bool fits(int64_t bytes) const { return !limit_.bytes || bytes <= *limit_.bytes - cushion_bytes(*limit_.bytes); }

  PlanRow as_written(const Plan& plan) const {
    if (!plan.micro_batch_is_auto) {
      const int64_t size =
          plan.indivisible_because.empty() ? std::min(train_.micro_batch, train_.batch_size) : train_.batch_size;
      return row(train_.batch_size, size);
    }
    PlanRow found;
    std::optional<PlanRow> tight;
    for (const int64_t size : halvings(train_.batch_size)) {
      found = row(train_.batch_size, size);
      if (fits(found.prediction.work_bytes)) return found;
      // Second best: the largest that runs at all, its free lists given back whenever memory is short.
      if (!tight && found.works) tight = found;
    }
    return tight.value_or(found);
  }

  // One batch at a time must fit; then the larger micro-batch is the better one.
  std::pair<bool, int64_t> rank(const PlanRow& row) const {
    return {fits(row.prediction.work_bytes), row.setting.micro_batch};
  }

  // Larger batches than the one written are shown but never recommended: the user did not ask for them.
  std::optional<PlanRow> recommended(const Plan& plan) const {
    std::optional<PlanRow> best;
    if (plan.as_written.works) best = plan.as_written;
    // A fixed micro-batch that works stays.
    if (best && !plan.micro_batch_is_auto) return best;
    for (const PlanRow& row : plan.rows) {
      if (!row.works || row.setting.batch_size > train_.batch_size) continue;
      if (!best || rank(row) > rank(*best)) best = row;
    }
    return best;
  }

  const TrainSection& train_;
  const Fit& fit_;
  const MemoryLimit& limit_;
};

}  // namespace

std::vector<int64_t> halvings(int64_t batch_size) {
  std::vector<int64_t> sizes = {batch_size};
  // Rounded up, as MicroBatch::halve() does.
  while (sizes.back() > 1) sizes.push_back((sizes.back() + 1) / 2);
  return sizes;
}

Plan make_plan(const Experiment& experiment, const Fit& fit, const MemoryLimit& limit) {
  return Planner(experiment, fit, limit).make();
}

int64_t Plan::least_bytes() const {
  int64_t least = as_written.prediction.least_bytes;
  for (const PlanRow& row : rows) {
    const bool may_come = micro_batch_is_auto && row.setting.batch_size == as_written.setting.batch_size;
    if (may_come) least = std::min(least, row.prediction.least_bytes);
  }
  return least;
}

nlohmann::json Plan::json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const PlanRow& row : rows) list.push_back(row_json(row));
  nlohmann::json json = {{"predicted_peak_bytes", as_written.prediction.peak_bytes},
                         {"fits", as_written.fits},
                         {"as_written", row_json(as_written)},
                         {"limit", {{"bytes", nullptr}, {"rule", limit.rule}}},
                         {"base_bytes", base_bytes},
                         {"recompute", recompute},
                         {"rows", list},
                         {"recommendation", nullptr},
                         {"cached", cached},
                         {"probe_seconds", probe_seconds}};
  if (limit.bytes) json["limit"]["bytes"] = *limit.bytes;
  if (recommended) json["recommendation"] = row_json(*recommended);
  if (!indivisible_because.empty()) json["why_whole"] = indivisible_because;
  return json;
}

}  // namespace headroom
