#include "profile/profile.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "memory/readable.hpp"
#include "report/text_table.hpp"

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

namespace {

std::string fixed(double value, int digits) {
  std::array<char, 64> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string share_text(int64_t part_ns, int64_t whole_ns) {
  return percent_text(whole_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(whole_ns) : 0.0, 1);
}

// The parts of a profile's text, each a paragraph.
class ProfileText {
 public:
  explicit ProfileText(const Profile& profile)
      : profile_(profile), count_(static_cast<double>(std::max<size_t>(1, profile.step_ns.size()))) {}

  std::string head() const {
    const Spent& steps = profile_.steps;
    return profile_.experiment + ": " + profile_.model + " on " + profile_.source + ", " +
           counted(profile_.step_ns.size(), "step") + " after " + std::to_string(profile_.warm_up_steps) +
           " of warm-up; micro-batch " + std::to_string(profile_.micro_batch) + ", " +
           counted(static_cast<uint64_t>(profile_.threads), "thread") + " on " + profile_.device + "\na step of " +
           per_step(profile_.samples, 0) + " samples takes " + ms(steps.ns) + " ms (median " +
           milliseconds(profile_.median_ns()) + "), with " + busy(steps) + " threads busy and " +
           per_step(steps.minor_faults, 1) + " minor and " + per_step(steps.major_faults, 1) + " major page faults\n";
  }

  std::string phases() const {
    TextTable table({"phase", "ms", "share", "threads busy", "minor faults", "major faults", "in operators"}, 1, false);
    for (size_t i = 0; i < step_phase_count; ++i) {
      const Spent& spent = profile_.phases[i];
      table.add({std::string(step_phase_name(static_cast<StepPhase>(i))), ms(spent.ns), share(spent.ns), busy(spent),
                 per_step(spent.minor_faults, 1), per_step(spent.major_faults, 1),
                 share_text(std::min(spent.operators_ns, spent.ns), spent.ns)});
    }
    return table.text() + "outside forward, backward and optimizer: " + ms(profile_.ns_outside_model()) + " ms, " +
           share(profile_.ns_outside_model()) + " of the step\n";
  }

  std::string operators(size_t most) const {
    TextTable table({"self ms", "share", "total ms", "calls", "operator"});
    const size_t shown = std::min(most, profile_.operators.size());
    for (size_t i = 0; i < shown; ++i) {
      const OperatorTime& one = profile_.operators[i];
      table.add(
          {ms(one.self_ns), share(one.self_ns), ms(one.total_ns), per_step(one.calls, 1), printable(one.name, 100)});
    }
    int64_t rest_ns = 0;
    for (size_t i = shown; i < profile_.operators.size(); ++i) rest_ns += profile_.operators[i].self_ns;
    if (shown < profile_.operators.size()) {
      table.add({ms(rest_ns), share(rest_ns), "", "",
                 std::to_string(profile_.operators.size() - shown) + " more (--all shows them)"});
    }
    const int64_t outside_ns = profile_.ns_outside_operators();
    table.add({ms(outside_ns), share(outside_ns), "", "", "outside LibTorch's operators"});
    return table.text();
  }

  std::string plugin_calls() const {
    TextTable table({"ms", "share", "calls", "plugin call"});
    for (const PluginCallTime& call : profile_.plugin_calls) {
      table.add({ms(call.ns), call.in_step ? share(call.ns) : "beside", per_step(call.calls, 1),
                 call.plugin + " " + call.entry});
    }
    const LoaderTimes& reading = profile_.reading;
    return table.text() + "reading a step's data, over all readers: " + seconds(reading.disk) + " ms for the disk, " +
           seconds(reading.decode) + " ms to decode, " + seconds(reading.normalize) + " ms to normalise; idle for " +
           seconds(reading.idle) + " ms\n";
  }

  std::string memory() const {
    const LedgerReading& ledger = profile_.memory;
    std::string text;
    for (size_t i = 0; i < owner_count; ++i) {
      if (ledger.peak_bytes[i] == 0) continue;
      text += (text.empty() ? "" : ", ") + std::string(owner_name(static_cast<Owner>(i))) + " " +
              size_text(ledger.peak_bytes[i]);
    }
    return "memory at its peak: " + text + "; the process " + size_text(ledger.peak_held_bytes) +
           (profile_.limit_bytes > 0 ? " of " + size_text(profile_.limit_bytes) : "") + "\n";
  }

  std::string files() const {
    std::string text;
    if (profile_.checkpoints > 0)
      text += "a checkpoint takes " + milliseconds(profile_.checkpoint_ns / profile_.checkpoints) + " ms\n";
    if (profile_.trace.empty()) return text;
    text += "trace: " + profile_.trace + ", for ui.perfetto.dev or chrome://tracing";
    if (profile_.left_out_of_trace > 0)
      text += "; the last " + std::to_string(profile_.left_out_of_trace) + " calls of operators had no room in it";
    return text + "\n";
  }

 private:
  static std::string milliseconds(double ns) { return fixed(1e-6 * ns, 3); }
  static std::string milliseconds(int64_t ns) { return milliseconds(static_cast<double>(ns)); }
  static std::string busy(const Spent& spent) {
    return fixed(spent.ns > 0 ? static_cast<double>(spent.cpu_ns) / static_cast<double>(spent.ns) : 0.0, 2);
  }
  std::string ms(int64_t ns) const { return milliseconds(static_cast<double>(ns) / count_); }
  std::string seconds(double seconds) const { return fixed(1e3 * seconds / count_, 3); }
  std::string share(int64_t ns) const { return share_text(ns, profile_.steps.ns); }
  std::string per_step(int64_t number, int digits) const { return fixed(static_cast<double>(number) / count_, digits); }

  const Profile& profile_;
  const double count_;  // of measured steps
};

}  // namespace

std::string Profile::text(size_t most_operators) const {
  const ProfileText text(*this);
  return text.head() + "\n" + text.phases() + "\n" + text.operators(most_operators) + "\n" + text.plugin_calls() +
         "\n" + text.memory() + text.files();
}

}  // namespace headroom
