#include "profile/profile.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom {

namespace {

using Json = nlohmann::json;

double milliseconds(int64_t ns) { return 1e-6 * static_cast<double>(ns); }

// Shares of nothing are 0.
double ratio(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

Json spent_json(const Spent& spent, double steps) {
  return {{"ms", milliseconds(spent.ns) / steps},
          {"cpu_ms", milliseconds(spent.cpu_ns) / steps},
          {"threads_busy", ratio(spent.cpu_ns, spent.ns)},
          {"minor_faults", static_cast<double>(spent.minor_faults) / steps},
          {"major_faults", static_cast<double>(spent.major_faults) / steps},
          {"operators_ms", milliseconds(spent.operators_ns) / steps}};
}

Json peaks_json(const LedgerReading& ledger) {
  Json peaks = Json::object();
  for (size_t i = 0; i < owner_count; ++i) peaks[std::string(owner_name(static_cast<Owner>(i)))] = ledger.peak_bytes[i];
  return peaks;
}

}  // namespace

std::string_view step_phase_name(StepPhase phase) {
  static constexpr std::array<std::string_view, step_phase_count> names = {
      "wait for data", "copy", "forward", "backward", "optimizer", "metrics and log", "checkpoint", "other"};
  return names[static_cast<size_t>(phase)];
}

Spent& Spent::operator+=(const Spent& other) {
  ns += other.ns;
  cpu_ns += other.cpu_ns;
  minor_faults += other.minor_faults;
  major_faults += other.major_faults;
  operators_ns += other.operators_ns;
  return *this;
}

Spent operator-(Spent a, const Spent& b) {
  a.ns -= b.ns;
  a.cpu_ns -= b.cpu_ns;
  a.minor_faults -= b.minor_faults;
  a.major_faults -= b.major_faults;
  a.operators_ns -= b.operators_ns;
  return a;
}

int64_t Profile::median_ns() const {
  if (step_ns.empty()) return 0;
  std::vector<int64_t> sorted = step_ns;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::ranges::nth_element(sorted, middle);
  return *middle;
}

int64_t Profile::ns_outside_model() const {
  int64_t within = 0;
  for (const StepPhase phase : {StepPhase::forward, StepPhase::backward, StepPhase::optimizer})
    within += phases[static_cast<size_t>(phase)].ns;
  return steps.ns - within;
}

// On a GPU a thread of backward's own may work beside that of the steps.
int64_t Profile::ns_outside_operators() const { return std::max<int64_t>(0, steps.ns - steps.operators_ns); }

Json Profile::json() const {
  const auto count = static_cast<double>(std::max<size_t>(1, step_ns.size()));
  const auto per_step = [&](int64_t ns) { return milliseconds(ns) / count; };
  Json step = spent_json(steps, count);
  step.update({{"median_ms", milliseconds(median_ns())}, {"samples", static_cast<double>(samples) / count}});
  Json phase_list = Json::array(), operator_list = Json::array(), call_list = Json::array();
  for (size_t i = 0; i < step_phase_count; ++i) {
    Json phase = spent_json(phases[i], count);
    phase.update({{"phase", step_phase_name(static_cast<StepPhase>(i))}, {"share", ratio(phases[i].ns, steps.ns)}});
    phase_list.push_back(std::move(phase));
  }
  for (const OperatorTime& one : operators) {
    operator_list.push_back({{"name", one.name},
                             {"calls", static_cast<double>(one.calls) / count},
                             {"self_ms", per_step(one.self_ns)},
                             {"total_ms", per_step(one.total_ns)},
                             {"share", ratio(one.self_ns, steps.ns)}});
  }
  for (const PluginCallTime& call : plugin_calls) {
    call_list.push_back({{"plugin", call.plugin},
                         {"entry", call.entry},
                         {"in_step", call.in_step},
                         {"calls", static_cast<double>(call.calls) / count},
                         {"ms", per_step(call.ns)},
                         {"share", call.in_step ? Json(ratio(call.ns, steps.ns)) : Json()}});
  }
  const auto of_outside = [&](int64_t ns) { return Json{{"ms", per_step(ns)}, {"share", ratio(ns, steps.ns)}}; };
  return {
      {"format", 1},
      {"experiment", experiment},
      {"model", model},
      {"source", source},
      {"device", device},
      {"threads", threads},
      {"warm_up_steps", warm_up_steps},
      {"steps", step_ns.size()},
      {"micro_batch", micro_batch},
      {"step", step},
      {"phases", phase_list},
      {"outside_model", of_outside(ns_outside_model())},
      {"operators", operator_list},
      {"outside_operators", of_outside(ns_outside_operators())},
      {"plugin_calls", call_list},
      {"reading",
       {{"disk_ms", 1e3 * reading.disk / count},
        {"decode_ms", 1e3 * reading.decode / count},
        {"normalize_ms", 1e3 * reading.normalize / count},
        {"idle_ms", 1e3 * reading.idle / count},
        {"batches", static_cast<double>(reading.batches) / count}}},
      {"checkpoint",
       {{"count", checkpoints}, {"ms", checkpoints > 0 ? milliseconds(checkpoint_ns / checkpoints) : 0.0}}},
      {"memory",
       {{"limit_bytes", limit_bytes}, {"peak_held_bytes", memory.peak_held_bytes}, {"peak_bytes", peaks_json(memory)}}},
      {"trace", trace.empty() ? Json() : Json{{"file", trace}, {"left_out", left_out_of_trace}}}};
}

}  // namespace headroom
