#include "sweep/sweep.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "memory/child_process.hpp"
#include "memory/signal_relay.hpp"
#include "memory/size_text.hpp"
#include "record/numbers.hpp"
#include "sweep/admission.hpp"
#include "sweep/trial_cgroup.hpp"
#include "sweep/trial_end.hpp"
#include "sweep/trial_entry.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr int most_restarts = 20;  // of one trial in a row, without a new checkpoint
constexpr int most_plans = 3;      // attempts to plan one trial

bool is_active(TrialState state) {
  return state == TrialState::planning || state == TrialState::running || state == TrialState::settling;
}
bool is_open(TrialState state) { return state == TrialState::waiting || state == TrialState::interrupted; }

class Supervisor {
 public:
  Supervisor(const fs::path& folder, fs::path program, int jobs)
      : folder_(folder),
        program_(std::move(program)),
        plan_(read_sweep_plan(folder)),
        view_(terminal_of(STDERR_FILENO)) {
    if (jobs > 0) plan_.jobs = jobs;
    entries_.reserve(plan_.trials.size());
    for (const Trial& trial : plan_.trials) {
      TrialEntry& entry = entries_.emplace_back(folder, trial);
      if (entry.settle()) remove_trial_cgroup(entry.cgroup);
      if (entry.state() == TrialState::infeasible) admission_.add_infeasible(trial);
    }
  }

  Exit run() {
    SignalRelay signals({SIGTERM, SIGINT, SIGHUP});
    view_.say("sweep: " + std::to_string(entries_.size()) + " trials, " + std::to_string(count(is_end)) +
              " of them done, " + std::to_string(plan_.jobs) + " at once with " + std::to_string(plan_.threads) +
              " threads each, in " + folder_.string());
    for (;;) {
      take_signals(signals);
      for (TrialEntry& entry : entries_) look_after(entry);
      if (!is_stopping()) start_what_fits();
      show();
      if (count(is_active) == 0 && (is_stopping() || count(is_open) == 0)) return conclude();
      const bool settling = count([](TrialState state) { return state == TrialState::settling; }) > 0;
      pollfd ready{.fd = signals.file(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, settling ? 50 : 500);
    }
  }

 private:
  template <class Predicate>
  size_t count(Predicate predicate) const {
    return static_cast<size_t>(
        std::ranges::count_if(entries_, [&](const TrialEntry& entry) { return predicate(entry.result.state); }));
  }
  bool is_stopping() const { return stop_ != Exit::ok || storm_.sentence().has_value(); }

  void take_signals(SignalRelay& signals) {
    bool from_terminal = false;
    while (const auto received = signals.take(from_terminal)) {
      if (stop_ == Exit::ok) {
        stop_ = received->signal == SIGINT ? Exit::interrupted : Exit::resumable;
        view_.say("sweep: " + signal_name(received->signal) + " from " + received->sender +
                  ": trials save and stop; go on with: headroom sweep --resume " + folder_.string());
      }
      if (!from_terminal || received->signal == SIGHUP) stop_children(received->signal == SIGINT ? SIGINT : SIGTERM);
    }
  }

  void stop_children(int signal) const {
    for (const TrialEntry& entry : entries_) {
      if (entry.child > 0) kill(entry.child, signal);
    }
  }

  // ---- ends

  void look_after(TrialEntry& entry) {
    if (entry.child > 0 && ended_by(entry.child)) {
      entry.exit_code = wait_for(entry.child).exit_code();
      entry.child = -1;
      if (entry.state() == TrialState::planning) return take_plan(entry);
      entry.state() = TrialState::settling;
    }
    if (entry.state() == TrialState::settling && entry.child < 0) take_end(entry);
  }

  void take_end(TrialEntry& entry) {
    const std::string before = entry.checkpoint;
    if (!entry.settle()) return;  // its trainer still saves
    remove_trial_cgroup(entry.cgroup);
    if (entry.state() == TrialState::finished) return say_finished(entry);
    if (is_end(entry.state()) || entry.began == fs::file_time_type{}) return;  // an orphan of another sweep's death
    const TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
    switch (judge(end, entry.result.run, entry.result.record)) {
      case Verdict::finished:
        return;
      case Verdict::go_on:
        return go_on(entry, end, before != entry.checkpoint);
      case Verdict::retry_smaller:
        return retry(entry, end);
      case Verdict::failed:
        return fail(entry, end);
    }
  }

  void say_finished(TrialEntry& entry) {
    storm_.add_success();
    const TrialRun& run = entry.result.run;
    const std::string metric = run.metric ? plan_.metric + " " + short_number(*run.metric) + ", " : "";
    view_.say(entry.id() + ": finished: " + metric + short_number(run.samples_per_second) + " samples/s, peak " +
              size_text(run.peak_bytes));
  }

  void go_on(TrialEntry& entry, const TrialEnd& end, bool got_further) {
    entry.restarts = got_further ? 0 : entry.restarts + 1;
    if (entry.restarts > most_restarts) {
      decide(entry, TrialState::failed,
             "it was stopped " + std::to_string(entry.restarts) + " times without getting further: " + end.sentence,
             end.exit_code);
    } else if (!is_stopping()) {
      view_.say(entry.id() + ": stopped with exit code " + std::to_string(end.exit_code) + "; it goes on");
    }
  }

  void retry(TrialEntry& entry, const TrialEnd& end) {
    TrialRecord& record = entry.result.record;
    record.retry_micro_batch = std::max<int64_t>(1, end.micro_batch / 2);
    record.retry_because = end.sentence;
    entry.folder.write(record);
    view_.say(entry.id() + ": it ran out of memory; once more with micro-batches of " +
              std::to_string(record.retry_micro_batch) + ", and the same window");
  }

  void fail(TrialEntry& entry, const TrialEnd& end) {
    const std::string why = end.sentence.empty() ? "exit code " + std::to_string(end.exit_code) : end.sentence;
    decide(entry, TrialState::failed, why, end.exit_code);
    const bool was_stopping = is_stopping();
    storm_.add_failure(why);
    if (was_stopping || !storm_.sentence()) return;
    storm_exit_ = static_cast<Exit>(end.exit_code);
    view_.say("sweep: trials fail alike, the rest is not started: " + why);
    stop_children(SIGTERM);
  }

  void decide(TrialEntry& entry, TrialState state, const std::string& why, int exit_code = 0) {
    entry.decide(state, why, exit_code);
    if (state == TrialState::infeasible) admission_.add_infeasible(*entry.result.trial);
    view_.say(entry.id() + ": " + std::string(state_name(state)) + ": " + why);
  }

  // ---- starts

  void start_what_fits() {
    admission_.begin_round();
    for (TrialEntry& entry : entries_) {
      if (count(is_active) >= static_cast<size_t>(plan_.jobs)) return;
      if (is_open(entry.state()) && may_start(entry)) start(entry);
    }
  }

  bool may_start(TrialEntry& entry) {
    entry.look_at();
    const bool alone = count(is_active) == 0;
    const bool is_new = entry.result.run.folder.empty() && entry.allowed_bytes() == 0;
    if (plan_.plan && is_new && entry.plans < most_plans && !fits(entry, alone)) return false;
    const int64_t needed = entry.allowed_bytes();
    if (alone) return true;
    if (needed == 0) return !plan_.plan;  // without a plan it may take all there is
    return admission_.has_room(needed, [this] { return expected_bytes(); });
  }

  // By its plan; asks for one, or ends the trial, where it does not.
  bool fits(TrialEntry& entry, bool alone) {
    const Admission::Judgement found =
        admission_.judge(*entry.result.trial, entry.shape, entry.limit, alone, entry.result.record);
    switch (found.answer) {
      case Admission::Answer::fits:
        entry.folder.write(entry.result.record);
        return true;
      case Admission::Answer::no_plan:
        ask_for_plan(entry);
        return false;
      case Admission::Answer::infeasible:
      case Admission::Answer::pruned:
        decide(entry, found.answer == Admission::Answer::pruned ? TrialState::pruned : TrialState::infeasible,
               found.why);
        return false;
      case Admission::Answer::later:
        break;
    }
    return false;
  }

  // One plan serves every trial of the group whose row is in its table: that of the largest window has most of them.
  void ask_for_plan(TrialEntry& entry) {
    if (count([](TrialState state) { return state == TrialState::planning; }) > 0) return;
    TrialEntry* largest = &entry;
    for (TrialEntry& other : entries_) {
      if (admission_.has_plan(entry.shape)) break;
      if (other.state() != TrialState::waiting) continue;
      other.look_at();
      if (other.shape.group == entry.shape.group && other.shape.window() > largest->shape.window()) largest = &other;
    }
    ++largest->plans;
    std::vector<std::string> words{"plan", largest->folder.experiment().string(), "--json"};
    add_plugin_dirs(words);
    start_child(*largest, words, largest->folder.path() / "plan.json", {}, TrialState::planning);
  }

  void take_plan(TrialEntry& entry) {
    entry.state() = TrialState::waiting;
    std::ifstream file(entry.folder.path() / "plan.json");
    const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    const auto exit = static_cast<Exit>(entry.exit_code);
    if (json.is_object() && (exit == Exit::ok || exit == Exit::does_not_fit))
      return admission_.add_plan(entry.shape, json);
    if (is_stopping() || entry.exit_code >= static_cast<int>(Exit::bug)) return;  // killed: again, a few times
    const TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
    if (exit != Exit::does_not_fit) return fail(entry, end);
    decide(entry, TrialState::infeasible, end.sentence, entry.exit_code);
  }

  void start(TrialEntry& entry) {
    const TrialRecord& record = entry.result.record;
    const fs::path& run = entry.result.run.folder;
    std::vector<std::string> words{"run"};
    if (run.empty()) {
      words.insert(words.end(), {entry.folder.experiment().string(), "--out", entry.folder.path().string()});
      if (!plan_.plan) words.emplace_back("--no-plan");
    } else {
      words.insert(words.end(), {"--resume", run.string()});
    }
    const auto set = [&](const char* key, int64_t value) {
      if (value > 0) words.insert(words.end(), {"--set", key + std::string("=") + std::to_string(value)});
    };
    set("memory.limit", record.limit_bytes);
    set("train.micro_batch", record.retry_micro_batch);
    add_plugin_dirs(words);
    const int64_t limit = entry.allowed_bytes();
    const fs::path cgroup = limit > 0 ? make_trial_cgroup(entry.cgroup, limit) : fs::path();
    if (!start_child(entry, words, {}, cgroup, TrialState::running)) return;
    admission_.take(limit);
    view_.say(entry.id() + (run.empty() ? ": started" : ": goes on") +
              (limit > 0 ? ", memory.limit " + size_text(limit) : ""));
  }

  void add_plugin_dirs(std::vector<std::string>& words) const {
    for (const fs::path& dir : plan_.plugin_dirs) words.insert(words.end(), {"--plugin-dir", dir.string()});
  }

  // False: what is left of an attempt before still holds the trial.
  bool start_child(TrialEntry& entry, const std::vector<std::string>& words, const fs::path& answer,
                   const fs::path& cgroup, TrialState state) {
    const int lock = entry.folder.try_lock();
    entry.began = {};
    entry.state() = lock < 0 ? TrialState::settling : state;
    if (lock < 0) return false;
    entry.began = fs::file_time_type::clock::now();
    entry.seen_step = -1;
    entry.child = start_trial_process(program_, words, entry.folder, lock, answer, cgroup);
    return true;
  }

  // Limits of those that have just started and have no reservation yet.
  int64_t expected_bytes() const {
    int64_t bytes = 0;
    for (const TrialEntry& entry : entries_) {
      if (entry.result.state == TrialState::running && !entry.has_begun()) bytes += entry.allowed_bytes();
    }
    return bytes;
  }

  // ---- what people see

  void show() {
    if (!view_.is_due()) return;
    std::vector<RunningRow> rows;
    for (TrialEntry& entry : entries_) {
      if (is_active(entry.state())) rows.push_back(entry.row());
    }
    view_.show(rows, std::to_string(count(is_end)) + " of " + std::to_string(entries_.size()) + " done");
  }

  Exit conclude() {
    std::vector<TrialResult> results;
    for (TrialEntry& entry : entries_) results.push_back(std::move(entry.result));
    const std::string text = write_results(folder_, plan_, results);
    view_.show({}, "");
    std::printf("%ssweep folder: %s\n", text.c_str(), folder_.c_str());
    if (!storm_.sentence() || stop_ != Exit::ok) return stop_;
    std::fprintf(stderr, "[sweep] trials failed alike, and the rest was not started: %s\n", storm_.sentence()->c_str());
    return storm_exit_;
  }

  const fs::path folder_, program_;
  SweepPlan plan_;
  SweepView view_;
  std::vector<TrialEntry> entries_;
  Admission admission_;
  FailureStorm storm_;
  Exit stop_ = Exit::ok, storm_exit_ = Exit::ok;
};

}  // namespace

void lay_out_sweep(const fs::path& folder, const SweepPlan& plan, const std::vector<Override>& overrides,
                   const ResolveTrial& resolve) {
  for (const Trial& trial : plan.trials) {
    Experiment experiment = load_trial(plan.file, overrides, trial.choices);
    if (experiment.experiment.threads == 0) experiment.experiment.threads = plan.threads;
    const TrialFolder place(folder, trial.id);
    std::error_code error;
    fs::create_directories(place.path(), error);
    write_file_atomically(place.experiment(), resolve(experiment));
  }
  write_file_atomically(folder / "sweep.json", plan.json().dump(2) + "\n");
}

Exit run_sweep(const fs::path& folder, const fs::path& program, int jobs) {
  return Supervisor(folder, program, jobs).run();
}

}  // namespace headroom
