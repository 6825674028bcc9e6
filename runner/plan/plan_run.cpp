#include "plan/plan_run.hpp"

#include <algorithm>
#include <spdlog/spdlog.h>

#include "memory/readable.hpp"
#include "memory/reservations.hpp"
#include "memory/start_queue.hpp"
#include "train/recompute.hpp"
#include "train/run_data.hpp"
#include "train/signals.hpp"

namespace headroom {

namespace {

// The limit a run would be given now; where it may wait for others to end, what it would be given without them.
MemoryLimit foreseen_limit(const std::string& wanted, bool may_wait) {
  Rooms rooms = read_rooms();
  if (may_wait) return limit_if_alone(wanted, std::move(rooms));
  set_aside(rooms, other_runs());
  return decide_limit(wanted, rooms);
}

Plan plan_with(const std::vector<std::string>& recompute, const MemoryLimit& limit, const RunData& data,
               const ProbeWords& words) {
  bool cached = false;
  Probe probe = find_probe(data, recompute, words, cached);
  if (probe.points.empty()) {
    throw Error(Exit::does_not_fit, "plan",
                "not even the smallest micro-batch went through the probe: " + probe.shortage);
  }
  const Experiment& experiment = data.experiment;
  const RunLoaders loaders{data.loader_options(/*training=*/true, probe.built_bytes),
                           data.loader_options(/*training=*/false, probe.built_bytes),
                           data.evaluates_in_larger_batches() && probe.indivisible_because.empty()};
  Plan plan = make_plan(experiment, Fit(std::move(probe), loaders, experiment.metrics.mode == "full"), limit);
  plan.cached = cached;
  plan.recompute = recompute;
  return plan;
}

// Where memory.recompute leaves it open: as little as fits, and everything where nothing does.
Plan plan_under(const MemoryLimit& limit, const RunData& data, const ProbeWords& words) {
  const std::vector<std::string>& wanted = data.experiment.memory.recompute;
  if (!chooses_recompute(wanted)) return plan_with(wanted, limit, data, words);
  const std::vector<std::string> all = data.model_library.recompute_kinds();
  // The first 0, 1, 2, ... kinds, in the order of the model; each set has a probe of its own.
  for (auto last = all.begin();; ++last) {
    try {
      Plan plan = plan_with({all.begin(), last}, limit, data, words);
      if (plan.as_written.works || last == all.end()) return plan;
    } catch (const Error& problem) {
      if (problem.exit_code() != Exit::does_not_fit || last == all.end()) throw;
    }
  }
}

bool is_for_want_of_memory(const Error& problem) {
  // Resumable: TakenByOthers.
  return problem.exit_code() == Exit::does_not_fit || problem.exit_code() == Exit::resumable;
}

// A probe needs memory itself. Where others hold that, a run that may wait for memory waits with its probe, too.
Plan patient_plan(const MemoryLimit& limit, const RunData& data, const ProbeWords& words, double& waited_seconds) {
  const double may_wait_seconds = data.experiment.memory.wait_seconds;
  if (may_wait_seconds <= 0) return plan_under(limit, data, words);
  const WaitClock clock = WaitClock::of_machine();
  for (;;) {
    const MemoryLimit room = foreseen_limit("auto", /*may_wait=*/false);
    try {
      return plan_under(limit, data, words);
    } catch (const Error& problem) {
      const bool may_wait = waited_seconds < may_wait_seconds && is_for_want_of_memory(problem) && room.bytes;
      if (!may_wait) throw;
      const double before = clock.now_seconds();
      const bool is_more =
          wait_for_more_memory({.name = data.experiment.experiment.name,
                                .wait_seconds = may_wait_seconds - waited_seconds,
                                .say = [](const std::string& line) { spdlog::info("[plan] {}", line); },
                                .cancelled = [] { return stop_requested() != Exit::ok; }},
                               *room.bytes, clock);
      waited_seconds += clock.now_seconds() - before;
      if (!is_more) throw;
    }
  }
}

std::string start_line(const Plan& plan) {
  const Setting& setting = plan.as_written.setting;
  return "plan: a peak of " + size_text(plan.as_written.prediction.peak_bytes) +
         " is predicted with micro-batches of " + std::to_string(setting.micro_batch) + recompute_text(plan.recompute) +
         " (" + (plan.cached ? "probed before" : "probed in " + time_text(plan.probe_seconds)) + ")";
}

}  // namespace

Plan plan_for(const RunData& data, const std::string& limit, const ProbeWords& words) {
  return plan_under(foreseen_limit(limit, /*may_wait=*/false), data, words);
}

std::optional<PlannedStart> plan_start(const RunData& data, const ProbeWords& words) {
  const MemorySection& memory = data.experiment.memory;
  std::optional<Plan> plan;
  double waited_seconds = 0;
  try {
    plan = patient_plan(foreseen_limit(memory.limit, memory.wait_seconds > 0), data, words, waited_seconds);
  } catch (const Error& problem) {
    // The terminal sends Ctrl-C to the probe too: its end then needs no warning.
    if (stop_requested() == Exit::ok) spdlog::warn("there is no plan; the run begins without one: {}", problem.what());
    return std::nullopt;
  }
  const int64_t peak = plan->as_written.prediction.peak_bytes, cache = data.expected_cache_bytes();
  const int64_t most = plan->limit.bytes ? std::max(peak, *plan->limit.bytes) : INT64_MAX;
  PlannedStart start{.predicted_peak_bytes = peak,
                     .needed_bytes = plan->least_bytes(),
                     .wanted_bytes = std::min(peak + cache, most),
                     .waited_seconds = waited_seconds,
                     .micro_batch = plan->as_written.setting.micro_batch,
                     .evaluation_micro_batch = plan->as_written.prediction.evaluation_micro_batch,
                     .recompute = plan->recompute,
                     .line = start_line(*plan)};
  if (cache > 0) start.line += "; in addition up to " + size_text(cache) + " of cached samples, which are freed first";
  if (plan->as_written.fits) return start;
  // Without a limit everything fits, so here there is one.
  const int64_t limit = *plan->limit.bytes;
  // Outside of the try above: a refusal is the result of a plan, not a plan that failed.
  if (!plan->as_written.works) throw Error(Exit::does_not_fit, "plan", plan->refusal(data.experiment));
  start.wanted_bytes = limit;
  start.line += "; under the limit of " + size_text(limit) + " fewer batches are read ahead and less is cached";
  return start;
}

}  // namespace headroom
