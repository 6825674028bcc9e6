#include "sweep/sweep.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <poll.h>
#include <unistd.h>

#include "memory/black_box.hpp"
#include "memory/child_process.hpp"
#include "memory/quantities.hpp"
#include "memory/signal_relay.hpp"
#include "record/numbers.hpp"
#include "sweep/memory_share.hpp"
#include "sweep/needs.hpp"
#include "sweep/results.hpp"
#include "sweep/sweep_view.hpp"
#include "sweep/trial_end.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int most_restarts = 20;  // of one trial in a row, without a new checkpoint
constexpr int most_plans = 3;      // attempts to plan one trial

// A trial in this supervisor's hands.
struct Entry {
  Entry(const fs::path& sweep, const Trial& trial) : folder(sweep, trial.id) { result.trial = &trial; }

  TrialResult result;
  TrialFolder folder;
  bool looked_at = false;  // shape and limit are known
  TrialShape shape;
  std::string limit;  // memory.limit of its experiment
  pid_t child = -1;   // -1: none, or nobody's any more
  int exit_code = 0;  // of the child that ended
  fs::file_time_type began = {};
  Clock::time_point began_at = {};
  int64_t began_step = -1;  // of the black box, when it was first seen
  int restarts = 0, plans = 0;
  std::string checkpoint;  // that the last attempt left

  const std::string& id() const { return result.trial->id; }
  TrialState& state() { return result.state; }
};

std::string last_checkpoint(const fs::path& run) {
  std::error_code none;
  return fs::read_symlink(run / "checkpoints" / "last", none).string();
}

bool has_setting(const Trial& trial, std::string_view key) {
  return std::ranges::find(trial.settings, key, &Settings::value_type::first) != trial.settings.end();
}

int64_t allowed_bytes(const Entry& entry) { return entry.result.record.limit_bytes; }

class Supervisor {
 public:
  Supervisor(const fs::path& folder, fs::path program, int jobs)
      : folder_(folder), program_(std::move(program)), plan_(read_sweep_plan(folder)), view_(terminal_of(STDERR_FILENO)) {
    if (jobs > 0) plan_.jobs = jobs;
    for (const Trial& trial : plan_.trials) {
      Entry entry(folder, trial);
      entry.result.record = entry.folder.record();
      settle(entry);
      entries_.push_back(std::move(entry));
    }
  }

  Exit run() {
    SignalRelay signals({SIGTERM, SIGINT, SIGHUP});
    relay_ = &signals;
    view_.say("sweep: " + std::to_string(entries_.size()) + " trials, " + std::to_string(count(is_end)) +
              " of them done, " + std::to_string(plan_.jobs) + " at once with " + std::to_string(plan_.threads) +
              " threads each, in " + folder_.string());
    for (;;) {
      take_signals();
      look_after_children();
      if (!is_stopping()) start_what_fits();
      show();
      if (is_over()) break;
      pollfd ready{.fd = signals.file(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, is_settling() ? 50 : 500);
    }
    return conclude();
  }

 private:
  template <class Predicate>
  size_t count(Predicate predicate) const {
    return static_cast<size_t>(
        std::ranges::count_if(entries_, [&](const Entry& entry) { return predicate(entry.result.state); }));
  }
  static bool is_active(TrialState state) {
    return state == TrialState::planning || state == TrialState::running || state == TrialState::settling;
  }
  static bool is_open(TrialState state) { return state == TrialState::waiting || state == TrialState::interrupted; }

  bool is_stopping() const { return stop_ != Exit::ok || storm_.sentence().has_value(); }
  bool is_settling() const { return count([](TrialState state) { return state == TrialState::settling; }) > 0; }
  bool is_over() const { return count(is_active) == 0 && (is_stopping() || count(is_open) == 0); }

  // ---- what is on the disk

  // Nobody works on it: its state is what its folder says. Somebody does: an orphan of a sweep that was killed.
  void settle(Entry& entry) {
    const int lock = entry.folder.try_lock();
    if (lock < 0) {
      entry.state() = TrialState::settling;
      return;
    }
    ::close(lock);
    entry.result.run = entry.folder.run();
    entry.state() = state_on_disk(entry.result.record, entry.result.run);
    entry.checkpoint = last_checkpoint(entry.result.run.folder);
    if (entry.state() == TrialState::infeasible) infeasible_.push_back(entry.result.trial);
  }

  void decide(Entry& entry, TrialState state, const std::string& why, int exit_code = 0) {
    TrialRecord& record = entry.result.record;
    record.decided = state;
    record.why = why;
    record.exit_code = exit_code;
    entry.folder.write(record);
    entry.state() = state;
    if (state == TrialState::infeasible) infeasible_.push_back(entry.result.trial);
    view_.say(entry.id() + ": " + std::string(state_name(state)) + (why.empty() ? "" : ": " + why));
  }

  // ---- ends

  void take_signals() {
    bool from_terminal = false;
    while (const auto received = relay_->take(from_terminal)) {
      if (stop_ == Exit::ok) {
        stop_ = received->signal == SIGINT ? Exit::interrupted : Exit::resumable;
        view_.say("sweep: " + signal_name(received->signal) + " from " + received->sender +
                  ": trials save and stop; go on with: headroom sweep --resume " + folder_.string());
      }
      if (!from_terminal) stop_children(received->signal == SIGINT ? SIGINT : SIGTERM);
    }
  }

  void stop_children(int signal) {
    for (const Entry& entry : entries_) {
      if (entry.child > 0) kill(entry.child, signal);
    }
  }

  void look_after_children() {
    for (Entry& entry : entries_) {
      if (entry.child > 0 && ended_by(entry.child)) {
        entry.exit_code = wait_for(entry.child).exit_code();
        entry.child = -1;
        if (entry.state() == TrialState::planning) {
          take_plan(entry);
        } else {
          entry.state() = TrialState::settling;
        }
      }
      if (entry.state() == TrialState::settling && entry.child < 0) take_end(entry);
    }
  }

  void take_end(Entry& entry) {
    settle(entry);
    if (entry.state() == TrialState::settling) return;  // its trainer still saves
    const std::string before = std::exchange(entry.checkpoint, last_checkpoint(entry.result.run.folder));
    if (is_end(entry.state()) || entry.began == fs::file_time_type{}) {  // or an orphan is gone
      if (entry.state() == TrialState::finished) say_finished(entry);
      return;
    }
    const TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
    switch (judge(end, entry.result.run, entry.result.record)) {
      case Verdict::finished:
        break;
      case Verdict::go_on:
        go_on(entry, end, before != entry.checkpoint);
        break;
      case Verdict::retry_smaller:
        retry(entry, end);
        break;
      case Verdict::failed:
        fail(entry, end);
        break;
    }
  }

  void say_finished(Entry& entry) {
    storm_.add_success();
    const TrialRun& run = entry.result.run;
    view_.say(entry.id() + ": finished: " + (run.metric ? plan_.metric + " " + short_number(*run.metric) + ", " : "") +
              short_number(run.samples_per_second) + " samples/s, peak " + size_text(run.peak_bytes));
  }

  void go_on(Entry& entry, const TrialEnd& end, bool got_further) {
    entry.restarts = got_further ? 0 : entry.restarts + 1;
    if (entry.restarts > most_restarts) {
      decide(entry, TrialState::failed,
             "it was stopped " + std::to_string(entry.restarts) + " times without getting further: " + end.sentence,
             end.exit_code);
      return;
    }
    if (!is_stopping()) view_.say(entry.id() + ": stopped with exit code " + std::to_string(end.exit_code) + "; it goes on");
  }

  void retry(Entry& entry, const TrialEnd& end) {
    TrialRecord& record = entry.result.record;
    record.retry_micro_batch = std::max<int64_t>(1, end.micro_batch / 2);
    record.retry_because = end.sentence;
    entry.folder.write(record);
    view_.say(entry.id() + ": it ran out of memory; once more with micro-batches of " +
              std::to_string(record.retry_micro_batch) + ", and the same window");
  }

  void fail(Entry& entry, const TrialEnd& end) {
    const std::string why = end.sentence.empty() ? "exit code " + std::to_string(end.exit_code) : end.sentence;
    decide(entry, TrialState::failed, why, end.exit_code);
    storm_.add_failure(why);
    if (!storm_.sentence()) return;
    storm_exit_ = static_cast<Exit>(end.exit_code);
    view_.say("sweep: trials fail alike, the rest is not started: " + why);
    stop_children(SIGTERM);
  }

  // ---- starts

  void start_what_fits() {
    free_bytes_.reset();
    for (Entry& entry : entries_) {
      if (count(is_active) >= static_cast<size_t>(plan_.jobs)) return;
      if (is_open(entry.state())) start(entry);
    }
  }

  void start(Entry& entry) {
    look_at(entry);
    if (entry.result.run.folder.empty() && plan_.plan && entry.plans < most_plans && !is_planned(entry)) return;
    const int64_t needed = allowed_bytes(entry);
    const bool alone = count(is_active) == 0;
    if (!alone && needed == 0 && plan_.plan) return;  // unplanned, it may take all there is
    if (!alone && needed > 0 && needed > free_bytes()) return;
    start_child(entry, words_for(entry), {}, TrialState::running);
    if (free_bytes_) *free_bytes_ -= std::min(needed, *free_bytes_);
  }

  void look_at(Entry& entry) {
    if (std::exchange(entry.looked_at, true)) return;
    const Experiment experiment = load_experiment(entry.folder.experiment());
    entry.shape = shape_of(entry.result.trial->settings, experiment.train);
    entry.limit = experiment.memory.limit;
  }

  // Whether it may start: false where it ended here, or a plan is on its way.
  bool is_planned(Entry& entry) {
    if (allowed_bytes(entry) > 0) return true;
    if (!largest_bytes_.contains(entry.limit)) {
      if (count(is_active) > 0 && entry.limit == "auto") return false;  // what they hold is not there for good
      largest_bytes_[entry.limit] = largest_trial_bytes(entry.limit);
    }
    const int64_t largest = largest_bytes_.at(entry.limit);
    const auto need = needs_.of(entry.shape, largest);
    const std::string smaller = infeasible_below(entry);
    TrialRecord& record = entry.result.record;
    if (need) record.predicted_peak_bytes = need->peak_bytes, record.micro_batch = need->micro_batch;
    if (!smaller.empty()) {
      decide(entry, TrialState::pruned, "it needs no less than " + smaller + ", which does not fit");
      return false;
    }
    if (!need) {
      ask_for_plan(entry);
      return false;
    }
    if (!need->fits) {
      decide(entry, TrialState::infeasible,
             "a peak of " + size_text(need->peak_bytes) + " is predicted with micro-batches of " +
                 std::to_string(need->micro_batch) + ", and memory.limit gives it " + size_text(largest));
      return false;
    }
    const bool is_swept = has_setting(*entry.result.trial, "memory.limit");
    record.limit_bytes = is_swept ? largest : trial_limit_bytes(need->peak_bytes, largest);
    entry.folder.write(record);
    return true;
  }

  std::string infeasible_below(const Entry& entry) const {
    const auto smaller = std::ranges::find_if(infeasible_, [&](const Trial* other) {
      return needs_no_less(entry.result.trial->settings, other->settings);
    });
    return smaller == infeasible_.end() ? "" : (*smaller)->id;
  }

  // One plan serves every trial of the group whose row is in its table: the largest window has most of them.
  void ask_for_plan(Entry& entry) {
    if (count([](TrialState state) { return state == TrialState::planning; }) > 0) return;
    Entry* largest = &entry;
    for (Entry& other : entries_) {
      if (other.state() != TrialState::waiting) continue;
      look_at(other);
      if (!needs_.has(entry.shape.group) && other.shape.group == entry.shape.group &&
          other.shape.window() > largest->shape.window())
        largest = &other;
    }
    ++largest->plans;
    std::vector<std::string> words{"plan", largest->folder.experiment().string(), "--json"};
    add_plugin_dirs(words);
    start_child(*largest, words, largest->folder.path() / "plan.json", TrialState::planning);
  }

  void take_plan(Entry& entry) {
    entry.state() = TrialState::waiting;
    std::ifstream file(entry.folder.path() / "plan.json");
    const auto json = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
    const auto exit = static_cast<Exit>(entry.exit_code);
    if (json.is_object() && (exit == Exit::ok || exit == Exit::does_not_fit)) {
      needs_.add(entry.shape.group, json);
      return;
    }
    if (is_stopping() || entry.exit_code >= static_cast<int>(Exit::bug)) return;  // killed: again, a few times
    const TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
    if (exit == Exit::does_not_fit) {
      decide(entry, TrialState::infeasible, end.sentence);
    } else {
      fail(entry, end);
    }
  }

  std::vector<std::string> words_for(const Entry& entry) const {
    const TrialRecord& record = entry.result.record;
    const fs::path& run = entry.result.run.folder;
    std::vector<std::string> words{"run"};
    if (run.empty()) {
      words.insert(words.end(), {entry.folder.experiment().string(), "--out", entry.folder.path().string()});
      if (!plan_.plan) words.emplace_back("--no-plan");
    } else {
      words.insert(words.end(), {"--resume", run.string()});
    }
    if (record.limit_bytes > 0) words.insert(words.end(), {"--set", "memory.limit=" + std::to_string(record.limit_bytes)});
    if (record.retry_micro_batch > 0)
      words.insert(words.end(), {"--set", "train.micro_batch=" + std::to_string(record.retry_micro_batch)});
    add_plugin_dirs(words);
    return words;
  }

  void add_plugin_dirs(std::vector<std::string>& words) const {
    for (const fs::path& dir : plan_.plugin_dirs) words.insert(words.end(), {"--plugin-dir", dir.string()});
  }

  void start_child(Entry& entry, const std::vector<std::string>& words, const fs::path& answer, TrialState state) {
    const int lock = entry.folder.try_lock();
    if (lock < 0) {
      entry.state() = TrialState::settling;
      entry.began = {};
      return;
    }
    entry.began = fs::file_time_type::clock::now();
    entry.began_at = Clock::now();
    entry.began_step = -1;
    entry.child = start_trial_process(program_, words, entry.folder, lock, answer);
    entry.state() = state;
    if (state == TrialState::planning) return;
    const int64_t limit = allowed_bytes(entry);
    view_.say(entry.id() + (entry.result.run.folder.empty() ? ": started" : ": goes on") +
              (limit > 0 ? ", memory.limit " + size_text(limit) : ""));
  }

  // As it was when this round of starts began, less what has been started since.
  int64_t free_bytes() {
    if (!free_bytes_) free_bytes_ = free_for_trials(expected_bytes());
    return *free_bytes_;
  }

  // Limits of those that have just started and have no reservation yet, which a run makes before its folder.
  int64_t expected_bytes() const {
    int64_t bytes = 0;
    for (const Entry& entry : entries_) {
      if (entry.result.state != TrialState::running) continue;
      const fs::path run = entry.folder.newest_run();
      std::error_code none;
      const bool has_begun = !run.empty() && fs::last_write_time(run / "experiment.toml", none) >= entry.began;
      if (!has_begun) bytes += allowed_bytes(entry);
    }
    return bytes;
  }

  // ---- what people see

  void show() {
    if (!view_.is_live() || Clock::now() - shown_at_ < std::chrono::milliseconds(400)) return;
    shown_at_ = Clock::now();
    std::vector<RunningRow> rows;
    for (Entry& entry : entries_) {
      if (is_active(entry.state())) rows.push_back(row_of(entry));
    }
    view_.show(rows, std::to_string(count(is_end)) + " of " + std::to_string(entries_.size()) + " done");
  }

  RunningRow row_of(Entry& entry) {
    RunningRow row{.id = entry.id(), .state = std::string(state_name(entry.state())), .position = "", .speed = "", .held = ""};
    if (entry.state() != TrialState::running) return row;
    const auto box = read_black_box(entry.folder.newest_run() / black_box_file);
    if (!box || box->records.empty()) return row;
    const auto now = Clock::now();
    if (entry.began_step < 0) entry.began_step = box->step, entry.began_at = now;
    const double seconds = std::chrono::duration<double>(now - entry.began_at).count();
    row.position = "epoch " + std::to_string(box->epoch + 1) + ", step " + std::to_string(box->step);
    if (seconds > 1) {
      const auto samples = static_cast<double>((box->step - entry.began_step) * entry.shape.window());
      row.speed = short_number(samples / seconds) + " samples/s";
    }
    row.held = size_text(box->records.back().held_bytes);
    return row;
  }

  Exit conclude() {
    std::vector<TrialResult> results;
    for (Entry& entry : entries_) results.push_back(std::move(entry.result));
    const std::string text = write_results(folder_, plan_, results);
    std::printf("%ssweep folder: %s\n", text.c_str(), folder_.c_str());
    if (storm_.sentence()) {
      std::fprintf(stderr, "[sweep] trials failed alike, and the rest was not started: %s\n", storm_.sentence()->c_str());
      return storm_exit_;
    }
    return stop_;
  }

  const fs::path folder_, program_;
  SweepPlan plan_;
  SweepView view_;
  std::vector<Entry> entries_;
  Needs needs_;
  std::vector<const Trial*> infeasible_;
  std::map<std::string, int64_t> largest_bytes_;  // by memory.limit
  std::optional<int64_t> free_bytes_;
  SignalRelay* relay_ = nullptr;
  FailureStorm storm_;
  Exit stop_ = Exit::ok, storm_exit_ = Exit::ok;
  Clock::time_point shown_at_ = {};
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
