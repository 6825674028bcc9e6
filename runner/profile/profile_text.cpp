#include <algorithm>
#include <array>
#include <cstdio>

#include "memory/readable.hpp"
#include "profile/profile.hpp"
#include "report/text_table.hpp"

namespace headroom {

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
