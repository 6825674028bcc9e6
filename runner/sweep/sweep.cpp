#include "sweep/sweep.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <unistd.h>
#include <utility>

#include "memory/child_process.hpp"
#include "memory/readable.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "sweep/slurm_jobs.hpp"
#include "sweep/trial_job.hpp"
#include "sweep/trial_process.hpp"
#include "sweep/trial_starts.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int most_restarts = 20;  // of one trial in a row, without a new checkpoint
constexpr int most_setups = 2;     // of these where it runs out of memory before it trains

class Supervisor {
 public:
  Supervisor(const fs::path& folder, const fs::path& program, SweepPlan plan)
      : folder_(folder),
        plan_(std::move(plan)),
        view_(terminal_of(STDERR_FILENO)),
        slurm_(jobs_of(folder, plan_)),
        rungs_(plan_.halving, entries_),
        starts_(program, plan_, entries_, rungs_, view_, slurm_ ? &*slurm_ : nullptr) {
    entries_.reserve(plan_.trials.size());
    for (const Trial& trial : plan_.trials) {
      TrialEntry& entry = entries_.emplace_back(folder, trial);
      // Nobody works on a trial that has settled: what an earlier life of this sweep left of it can go.
      if (entry.settle()) remove_trial_cgroup(entry.cgroup);
      if (slurm_ && entry.result.record.job > 0 && !entry.result.record.decided)
        entry.take_job(entry.result.record.job);
      // So that it prunes trials which need no less, as in that life.
      if (entry.state() == TrialState::infeasible) starts_.add_infeasible(trial);
    }
    rungs_.promote();  // as far as an earlier life of this sweep knew
    for (TrialEntry& entry : entries_) {
      // What a job has reached is seen at its end.
      if (!entry.is_job()) rungs_.pause(entry);
    }
  }

  Exit run() {
    SignalRelay signals({SIGTERM, SIGINT, SIGHUP});
    view_.say("sweep: " + std::to_string(entries_.size()) + " trials, " + std::to_string(count(entries_, is_end)) +
              " of them done, " + std::to_string(plan_.jobs) + " at once with " + std::to_string(plan_.threads) +
              " threads each" + (slurm_ ? ", as jobs of Slurm named " + slurm_->name() : "") + ", in " +
              folder_.string());
    for (;;) {
      const auto before = Clock::now();
      take_signals(signals);
      if (slurm_ && stop_ == Exit::ok) look_at_jobs();
      // Ends before starts: they free memory and promote trials, which start in the same round.
      for (TrialEntry& entry : entries_) look_after(entry);
      rungs_.promote();
      if (!is_stopping() && (!slurm_ || slurm_->has_answered())) start_trials();
      busy_ += Clock::now() - before;
      show();
      if (!is_busy() && (is_stopping() || count(entries_, is_open) == 0)) return conclude();
      // A lock that is given back sends no signal, so trials that settle are looked at more often. Ends of children
      // wake this poll (SIGCHLD); 500 ms are for the table, and for memory that others give back.
      const bool settling = count(entries_, [](TrialState state) { return state == TrialState::settling; }) > 0;
      pollfd ready{.fd = signals.file(), .events = POLLIN, .revents = 0};
      poll(&ready, 1, settling ? 50 : 500);
    }
  }

 private:
  static std::optional<SlurmJobs> jobs_of(const fs::path& folder, const SweepPlan& plan) {
    if (!plan.slurm) return std::nullopt;
    require_slurm();
    return SlurmJobs(job_name(folder), *plan.slurm);
  }

  bool is_stopping() const { return stop_ != Exit::ok || storm_.sentence().has_value(); }

  // Whether something works that it waits for. Where a signal ends this process its jobs go on.
  bool is_busy() const {
    return std::ranges::any_of(entries_, [this](const TrialEntry& entry) {
      return is_active(entry.result.state) && (stop_ == Exit::ok || !entry.is_job());
    });
  }

  void start_trials() {
    starts_.start_what_fits();
    for (const auto& [entry, end] : starts_.take_refused()) fail(*entry, end);
  }

  void take_signals(SignalRelay& signals) {
    bool from_terminal = false;
    while (const auto received = signals.take(from_terminal)) {
      if (stop_ == Exit::ok) {
        stop_ = received->signal == SIGINT ? Exit::interrupted : Exit::resumable;
        const std::string go_on = "headroom sweep --resume " + shell_word(folder_.string());
        view_.say("sweep: " + signal_name(received->signal) + " from " + received->sender + ": " +
                  (slurm_ ? "its jobs go on in Slurm; follow them with: " + go_on +
                                ", or end them with: scancel --name=" + slurm_->name()
                          : "trials save and stop; go on with: " + go_on));
      }
      // The terminal has sent Ctrl-C to the children itself; a second one would end them at once.
      if (!from_terminal || received->signal == SIGHUP) stop_children(received->signal == SIGINT ? SIGINT : SIGTERM);
    }
  }

  void stop_children(int signal) const {
    for (const TrialEntry& entry : entries_) {
      if (entry.child > 0) kill(entry.child, signal);
    }
  }

  // ---- jobs

  void look_at_jobs() {
    const bool is_new = slurm_->look();
    const std::string& complaint = slurm_->complaint();
    if (!complaint.empty() && complaint != said_) view_.say("sweep: Slurm does not answer: " + complaint);
    said_ = complaint;
    if (!is_new) return;
    // A copy: cancel() and submit() change the list.
    for (const SlurmJob& job : std::vector(slurm_->all())) {
      if (!job.is_over()) take_job(job);
    }
  }

  // A job of a trial that this sweep has not given it: it died between sbatch and trial.json; or somebody had Slurm
  // start the job again of a trial that is done, or waits at the end of a rung.
  void take_job(const SlurmJob& job) {
    const auto entry = std::ranges::find(entries_, job.trial, &TrialEntry::id);
    if (entry != entries_.end() && entry->result.record.job == job.id) return;
    if (entry != entries_.end() && entry->result.record.job == 0 && is_open(entry->state())) {
      view_.say(entry->id() + ": job " + std::to_string(job.id) + " was found in Slurm");
      return entry->take_job(job.id);
    }
    view_.say("sweep: job " + std::to_string(job.id) + " is cancelled: no trial of the sweep needs it");
    slurm_->cancel(job.id);
  }

  void look_after_job(TrialEntry& entry) {
    const SlurmJob* job = slurm_->find(entry.result.record.job);
    entry.queued.clear();
    if (job != nullptr && job->is_waiting())
      entry.queued = "job " + std::to_string(job->id) + " " + job->state + ": " + job->reason;
    if (!slurm_->has_answered() || (job != nullptr && !job->is_over())) return;
    // Slurm forgets jobs some minutes after their end.
    entry.exit_code = job != nullptr ? job->exit_code() : static_cast<int>(Exit::killed);
    entry.state() = TrialState::settling;
    entry.result.record.job = 0;
    starts_.add_job_end();
    take_end(entry);
    // With what was decided about its end, or it would be judged by the next life of this sweep.
    entry.folder.write(entry.result.record);
  }

  // ---- ends

  void look_after(TrialEntry& entry) {
    if (entry.is_job()) return look_after_job(entry);
    if (entry.child > 0 && ended_by(entry.child)) {
      entry.exit_code = wait_for(entry.child).exit_code();
      entry.child = -1;
      if (entry.state() == TrialState::planning) {
        if (const auto end = starts_.take_plan(entry, is_stopping())) fail(entry, *end);
        return;
      }
      entry.state() = TrialState::settling;
    }
    // The child is gone, but its trainer may still save, and holds the lock until then.
    if (entry.state() == TrialState::settling && entry.child < 0) take_end(entry);
  }

  void take_end(TrialEntry& entry) {
    // settle() reads it anew: another checkpoint means that the attempt got further.
    const std::string before = entry.checkpoint;
    if (!entry.settle()) return;  // its trainer still saves
    remove_trial_cgroup(entry.cgroup);
    if (rungs_.pause(entry) || entry.state() == TrialState::finished) return say_metric(entry);
    if (is_end(entry.state()) || entry.began == fs::file_time_type{}) return;  // an orphan of another sweep's death
    const TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
    const bool got_further = before != entry.checkpoint;
    if (lacked_memory(end, got_further) && !is_stopping() && starts_.waits_for_other_runs(entry)) return;
    switch (judge(end, entry.result.run, entry.result.record)) {
      case Verdict::finished:
        return;
      case Verdict::go_on:
        return go_on(entry, end, got_further);
      case Verdict::retry_smaller:
        return retry(entry, end);
      case Verdict::failed:
        return fail(entry, end);
    }
  }

  // Where others take the memory a run may also save, and ask to be resumed.
  static bool lacked_memory(const TrialEnd& end, bool got_further) {
    return end.ran_out() || (end.exit_code == static_cast<int>(Exit::resumable) && !got_further);
  }

  // Of what has finished, or waits at the end of a rung.
  void say_metric(TrialEntry& entry) {
    storm_.add_success();
    const TrialRun& run = entry.result.run;
    const std::string metric = run.metric ? plan_.metric + " " + short_number(*run.metric) + ", " : "";
    const std::string at = entry.state() == TrialState::paused ? " after epoch " + std::to_string(run.epochs) : "";
    view_.say(entry.id() + ": " + std::string(state_name(entry.state())) + at + ": " + metric +
              short_number(run.samples_per_second) + " samples/s, peak " + size_text(run.peak_bytes));
  }

  void go_on(TrialEntry& entry, const TrialEnd& end, bool got_further) {
    entry.restarts = got_further ? 0 : entry.restarts + 1;
    if (entry.restarts > (end.ran_out() && end.in_setup ? most_setups : most_restarts)) {
      starts_.decide(
          entry, TrialState::failed,
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
    starts_.decide(entry, TrialState::failed, why, end.exit_code);
    // A sweep that stops already has said why.
    const bool was_stopping = is_stopping();
    storm_.add_failure(why);
    if (was_stopping || !storm_.sentence()) return;
    storm_exit_ = static_cast<Exit>(end.exit_code);
    view_.say("sweep: trials fail alike, the rest is not started: " + why);
    stop_children(SIGTERM);
    for (const TrialEntry& other : entries_) {
      if (other.is_job()) slurm_->cancel(other.result.record.job);
    }
  }

  // ---- what people see

  void show() {
    if (!view_.is_due()) return;
    std::vector<RunningRow> rows;
    for (TrialEntry& entry : entries_) {
      if (is_active(entry.state())) rows.push_back(entry.row());
    }
    const size_t paused = count(entries_, [](TrialState state) { return state == TrialState::paused; });
    view_.show(rows, std::to_string(count(entries_, is_end)) + " of " + std::to_string(entries_.size()) + " done" +
                         (paused > 0 ? ", " + std::to_string(paused) + " paused" : ""));
  }

  // What a start costs beside the process itself: looking at trials, rungs, memory and signals.
  std::optional<double> scheduling_ms() const {
    if (starts_.started() == 0) return std::nullopt;
    const std::chrono::duration<double, std::milli> ours = busy_ - starts_.starting_them();
    return ours.count() / static_cast<double>(starts_.started());
  }

  Exit conclude() {
    // A sweep that was stopped goes on later, and its paused trials with it.
    if (!is_stopping()) rungs_.drop();
    std::vector<TrialResult> results;
    for (TrialEntry& entry : entries_) results.push_back(std::move(entry.result));
    const std::string text = write_results(folder_, plan_, results, scheduling_ms());
    // The table goes before the results are printed, or they would be drawn over.
    view_.show({}, "");
    std::printf("%ssweep folder: %s\n", text.c_str(), folder_.c_str());
    if (!storm_.sentence() || stop_ != Exit::ok) return stop_;
    std::fprintf(stderr, "[sweep] trials failed alike, and the rest was not started: %s\n", storm_.sentence()->c_str());
    return storm_exit_;
  }

  const fs::path folder_;
  // Before rungs and starts, which keep references to plan, view and entries. No entry is added after the beginning.
  SweepPlan plan_;
  SweepView view_;
  std::optional<SlurmJobs> slurm_;  // nullopt: trials are children of this process
  std::string said_;                // Slurm's words, as last reported
  std::vector<TrialEntry> entries_;
  SweepRungs rungs_;
  TrialStarts starts_;
  Clock::duration busy_ = {};
  FailureStorm storm_;
  Exit stop_ = Exit::ok, storm_exit_ = Exit::ok;
};

}  // namespace

void lay_out_sweep(const fs::path& folder, const SweepPlan& plan, const std::vector<Override>& overrides,
                   const ResolveTrial& resolve) {
  for (const Trial& trial : plan.trials) {
    Experiment experiment = load_trial(plan.file, overrides, trial.choices);
    // Left open, each trial would take all cores.
    if (experiment.experiment.threads == 0) experiment.experiment.threads = plan.threads;
    const TrialFolder place(folder, trial.id);
    std::error_code error;
    fs::create_directories(place.path(), error);
    write_file_atomically(place.experiment(), resolve(experiment));
  }
  // Last: a folder with a sweep.json has all of its trials.
  write_file_atomically(folder / "sweep.json", json_text(plan.json(), 2) + "\n");
}

Exit run_sweep(const fs::path& folder, const fs::path& program, int jobs,
               const std::vector<std::string>& sbatch_options) {
  SweepPlan plan = read_sweep_plan(folder);
  if (jobs > 0) plan.jobs = jobs;
  if (!sbatch_options.empty()) {
    if (!plan.slurm)
      throw Error(Exit::bad_input, "sweep", "words behind -- are options of sbatch, and this sweep does not use Slurm");
    plan.slurm = sbatch_options;
  }
  return Supervisor(folder, program, std::move(plan)).run();
}

}  // namespace headroom
