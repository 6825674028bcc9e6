#include "sweep/trial_starts.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "memory/readable.hpp"
#include "record/run_folder.hpp"
#include "sweep/trial_job.hpp"
#include "sweep/trial_process.hpp"

namespace headroom {

namespace {

// All trials have one experiment.metric, so any of them that has a value knows its direction.
bool lower_wins(const std::vector<TrialEntry>& entries) {
  for (const TrialEntry& entry : entries) {
    if (entry.result.run.metric) return entry.result.run.lower_wins;
  }
  return true;
}

}  // namespace

bool SweepRungs::pause(TrialEntry& entry) const {
  const TrialRun& run = entry.result.run;
  if (!halving_.is_on() || entry.result.record.decided || run.folder.empty()) return false;
  std::vector<double>& metrics = entry.result.record.rung_metrics;
  const size_t before = metrics.size(), end = run.finished ? halving_.rung_epochs.size() : entry.rung + 1;
  // A finished trial has reached every rung, also where it stopped early.
  const int64_t epochs = run.finished ? std::numeric_limits<int64_t>::max() : run.epochs;
  while (metrics.size() < end && halving_.rung_epochs[metrics.size()] <= epochs)
    metrics.push_back(run.metric.value_or(NAN));
  // On the disk before anybody is promoted by it: a sweep that is resumed promotes the same trials.
  if (metrics.size() > before) entry.folder.write(entry.result.record);
  if (run.finished || metrics.size() <= entry.rung) return false;
  entry.state() = TrialState::paused;
  entry.restarts = 0;
  return true;
}

void SweepRungs::promote() {
  if (!halving_.is_on()) return;
  std::vector<Climb> climbs;
  size_t known = 0;
  for (TrialEntry& entry : entries_) {
    const bool is_out = is_end(entry.state()) && entry.state() != TrialState::finished;
    climbs.push_back({entry.result.record.rung_metrics, is_out});
    known += climbs.back().metrics.size() + (is_out ? 1 : 0);
  }
  // Promotions follow from metrics and ends alone.
  if (known == known_) return;
  known_ = known;
  const std::vector<size_t> rungs = promotions(climbs, halving_, lower_wins(entries_));
  for (size_t i = 0; i < entries_.size(); ++i) {
    entries_[i].rung = rungs[i];
    if (entries_[i].state() == TrialState::paused && climbs[i].metrics.size() <= rungs[i])
      entries_[i].state() = TrialState::interrupted;
  }
}

void SweepRungs::drop() const {
  for (TrialEntry& entry : entries_) {
    if (entry.state() == TrialState::paused) entry.state() = TrialState::dropped;
  }
}

int64_t SweepRungs::until_epoch(const TrialEntry& entry) const {
  return entry.rung + 1 < halving_.rung_epochs.size() ? halving_.rung_epochs[entry.rung] : 0;
}

namespace {

namespace fs = std::filesystem;

constexpr int most_plans = 3;  // attempts to plan one trial

// What jobs may have; nullopt: trials run here.
std::optional<int64_t> node_bytes_of(const SlurmJobs* slurm) {
  return slurm != nullptr ? std::optional(slurm->node_bytes()) : std::nullopt;
}

}  // namespace

TrialStarts::TrialStarts(fs::path program, const SweepPlan& plan, std::vector<TrialEntry>& entries,
                         const SweepRungs& rungs, SweepView& view, SlurmJobs* slurm)
    : program_(std::move(program)),
      plan_(plan),
      entries_(entries),
      rungs_(rungs),
      view_(view),
      slurm_(slurm),
      admission_(node_bytes_of(slurm)) {}

void TrialStarts::start_what_fits() {
  admission_.begin_round();
  // Without halving all trials are on rung 0.
  for (size_t rung = std::max<size_t>(plan_.halving.rung_epochs.size(), 1); rung-- > 0;) {
    for (TrialEntry& entry : entries_) {
      if (count(entries_, is_active) >= static_cast<size_t>(plan_.jobs) || !takes_jobs()) return;
      if (entry.rung == rung && is_open(entry.state()) && may_start(entry)) start(entry);
    }
  }
}

bool TrialStarts::may_start(TrialEntry& entry) {
  entry.look_at();
  if (!is_due(entry)) return false;
  const bool alone = is_alone();
  // One that has begun, or was planned in an earlier life of the sweep, has its limit already.
  const bool is_new = entry.result.run.folder.empty() && entry.allowed_bytes() == 0;
  if (plan_.plan && is_new && entry.plans < most_plans && !fits(entry, alone)) return false;
  const int64_t needed = entry.allowed_bytes();
  if (alone) return true;
  if (needed == 0) return !plan_.plan;  // without a plan it may take all there is
  return has_room(needed);
}

bool TrialStarts::takes_jobs() const {
  return slurm_ == nullptr || (slurm_->complaint().empty() && !waits_for_job_end_);
}

bool TrialStarts::is_alone() const { return slurm_ != nullptr || count(entries_, is_active) == 0; }

bool TrialStarts::has_room(int64_t bytes) {
  return admission_.has_room(bytes, [this] { return expected_bytes(); });
}

// By its plan; asks for one, or ends the trial, where it does not.
bool TrialStarts::fits(TrialEntry& entry, bool alone) {
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
      decide(entry, TrialState::infeasible, found.why);
      return false;
    case Admission::Answer::pruned:
      decide(entry, TrialState::pruned, found.why);
      return false;
    case Admission::Answer::later:
      if (!found.why.empty()) say_once(entry, found.why);
      break;
  }
  return false;
}

bool TrialStarts::is_due(const TrialEntry& entry) {
  return entry.too_little_bytes == 0 || admission_.is_due_again(entry.too_little_bytes);
}

void TrialStarts::say_once(TrialEntry& entry, const std::string& why) {
  if (std::exchange(entry.said, why) != why) view_.say(entry.id() + ": " + why);
}

bool TrialStarts::waits_for_other_runs(TrialEntry& entry) {
  if (!entry.outlook.depends_on_others()) return false;
  entry.too_little_bytes = entry.outlook.bytes;
  say_once(entry, "there was too little memory beside other runs: it waits for them");
  return true;
}

// One plan serves every trial of the group whose row is in its table: that of the largest window has most of them.
void TrialStarts::ask_for_plan(TrialEntry& entry) {
  // One at a time: the table to come may serve this trial, too.
  if (count(entries_, [](TrialState state) { return state == TrialState::planning; }) > 0) return;
  TrialEntry* largest = &entry;
  for (TrialEntry& other : entries_) {
    // The table of the group lacks the row of this very trial: it is planned itself.
    if (admission_.has_plan(entry.shape)) break;
    if (other.state() != TrialState::waiting) continue;
    other.look_at();
    if (other.shape.group == entry.shape.group && other.shape.window() > largest->shape.window()) largest = &other;
  }
  const bool alone = is_alone();
  if ((largest->plans_alone && !alone) || !is_due(*largest)) return;
  plan_has_company_ = !alone;
  ++largest->plans;
  std::vector<std::string> words{"plan", largest->folder.experiment().string(), "--json"};
  add_plugin_dirs(words);
  start_child(*largest, words, largest->folder.path() / "plan.json", {}, TrialState::planning);
}

std::optional<TrialEnd> TrialStarts::take_plan(TrialEntry& entry, bool is_stopping) {
  entry.state() = TrialState::waiting;
  const auto json = read_json_file(entry.folder.path() / "plan.json");
  const auto exit = static_cast<Exit>(entry.exit_code);
  // Exit 5 with a table says that nothing fits the limit of now; the figures hold all the same.
  if (json.is_object() && (exit == Exit::ok || exit == Exit::does_not_fit)) {
    admission_.add_plan(entry.shape, json);
    return std::nullopt;
  }
  if (is_stopping || entry.exit_code >= static_cast<int>(Exit::bug)) return std::nullopt;  // killed: again, a few times
  TrialEnd end = read_trial_end(entry.folder, entry.result.record, entry.exit_code, entry.began);
  if (exit != Exit::does_not_fit) return end;
  // What other trials held meanwhile is no reason to call it infeasible: once more when none of them runs.
  if (plan_has_company_) {
    entry.plans_alone = true;
    return std::nullopt;
  }
  // Nor is what runs outside of the sweep held: once more when they have given it back, which is no further attempt.
  if (waits_for_other_runs(entry)) {
    --entry.plans;
    return std::nullopt;
  }
  decide(entry, TrialState::infeasible, end.sentence, entry.exit_code);
  return std::nullopt;
}

void TrialStarts::decide(TrialEntry& entry, TrialState state, const std::string& why, int exit_code) {
  entry.decide(state, why, exit_code);
  if (state == TrialState::infeasible) add_infeasible(*entry.result.trial);
  view_.say(entry.id() + ": " + std::string(state_name(state)) + ": " + why);
}

void TrialStarts::start(TrialEntry& entry) {
  if (slurm_ != nullptr) return submit(entry);
  const int64_t limit = entry.allowed_bytes();
  const fs::path cgroup = limit > 0 ? make_trial_cgroup(entry.cgroup, limit) : fs::path();
  std::string limit_word = limit > 0 ? std::to_string(limit) : "";
  // Alone it starts whatever is free. Where others have taken memory since it was planned, a limit that was told would
  // let it grow until the kernel kills: "auto" keeps it within what there is.
  const bool is_free = limit > 0 && has_room(limit), is_taken = limit > 0 && entry.limit == "auto" && !is_free;
  if (is_taken) limit_word = "auto";
  const fs::path& run = entry.result.run.folder;
  std::vector<std::string> words{"run", "--resume", run.string()};
  if (run.empty()) words = begin_words(entry);
  const std::vector<std::string> common = common_words(entry, limit_word);
  words.insert(words.end(), common.begin(), common.end());
  if (!start_child(entry, words, {}, cgroup, TrialState::running)) return;
  if (is_free) entry.outlook = {};  // others hold nothing that it could lack
  plan_has_company_ = true;
  ++started_;
  // It has reserved nothing yet, and the next one of this round must not count on the same memory.
  admission_.take(limit);
  const int64_t until = rungs_.until_epoch(entry);
  view_.say(entry.id() + (entry.result.run.folder.empty() ? ": started" : ": goes on") +
            (until > 0 ? " to epoch " + std::to_string(until) : "") +
            (limit > 0 && !is_taken ? ", memory.limit " + size_text(limit) : "") +
            (is_taken ? ", memory.limit auto: the " + size_text(limit) + " that it is planned with are not free" : ""));
}

void TrialStarts::submit(TrialEntry& entry) {
  const int64_t limit = entry.allowed_bytes();
  const std::string limit_word = limit > 0 ? std::to_string(limit) : "";
  write_file_atomically(
      entry.folder.job(),
      job_script(program_, entry.folder, {.begin = begin_words(entry), .both = common_words(entry, limit_word)}));
  const JobRequest request{.script = entry.folder.job(),
                           .log = entry.folder.log(),
                           .trial = entry.id(),
                           .memory_bytes = limit > 0 ? bound_for(limit) : 0,
                           .cpus = plan_.threads};
  const auto before = std::chrono::steady_clock::now();
  const auto job = slurm_->submit(request);
  starting_ += std::chrono::steady_clock::now() - before;
  if (!job) return take_refusal(entry);
  entry.take_job(*job);
  ++started_;
  const int64_t until = rungs_.until_epoch(entry);
  view_.say(entry.id() + ": job " + std::to_string(*job) + (entry.result.run.folder.empty() ? "" : ", goes on") +
            (until > 0 ? ", to epoch " + std::to_string(until) : "") +
            (limit > 0 ? ", memory.limit " + size_text(limit) + ", --mem " + size_text(request.memory_bytes) : ""));
}

// Slurm may be away, or take no more jobs of a user than so many. Otherwise it has no reason to take this one later.
void TrialStarts::take_refusal(TrialEntry& entry) {
  const std::string words = slurm_->complaint();
  if (!slurm_->look_now()) return say_once(entry, "Slurm takes no job: " + words + "; it is asked again");
  waits_for_job_end_ = count(entries_, [](TrialState state) { return state == TrialState::running; }) > 0;
  if (waits_for_job_end_) return say_once(entry, "Slurm refuses its job, which waits for another one's end: " + words);
  refused_.emplace_back(&entry, TrialEnd{.exit_code = static_cast<int>(Exit::bad_input),
                                         .sentence = "[sweep] Slurm refuses its job: " + words});
  // It is no longer open until it is judged.
  entry.state() = TrialState::settling;
}

std::vector<std::string> TrialStarts::begin_words(const TrialEntry& entry) const {
  std::vector<std::string> words{"run", entry.folder.experiment().string(), "--out", entry.folder.path().string()};
  if (!plan_.plan) words.emplace_back("--no-plan");
  return words;
}

std::vector<std::string> TrialStarts::common_words(const TrialEntry& entry, const std::string& limit) const {
  const TrialRecord& record = entry.result.record;
  std::vector<std::string> words;
  // At the end of its rung the run saves and stops (exit 75).
  if (const int64_t until = rungs_.until_epoch(entry); until > 0)
    words.insert(words.end(), {"--until-epoch", std::to_string(until)});
  if (!limit.empty()) words.insert(words.end(), {"--set", "memory.limit=" + limit});
  if (record.retry_micro_batch > 0)
    words.insert(words.end(), {"--set", "train.micro_batch=" + std::to_string(record.retry_micro_batch)});
  add_plugin_dirs(words);
  return words;
}

void TrialStarts::add_plugin_dirs(std::vector<std::string>& words) const {
  for (const fs::path& dir : plan_.plugin_dirs) words.insert(words.end(), {"--plugin-dir", dir.string()});
}

// False: what is left of an attempt before still holds the trial.
bool TrialStarts::start_child(TrialEntry& entry, const std::vector<std::string>& words, const fs::path& answer,
                              const fs::path& cgroup, TrialState state) {
  const int lock = entry.folder.try_lock();
  entry.began = {};
  entry.state() = lock < 0 ? TrialState::settling : state;
  if (lock < 0) return false;
  // Before the start: whatever this attempt writes is newer.
  entry.began = fs::file_time_type::clock::now();
  entry.seen_step = -1;
  entry.too_little_bytes = 0;
  entry.outlook = admission_.automatic();
  const auto before = std::chrono::steady_clock::now();
  entry.child = start_trial_process(program_, words, entry.folder, lock, answer, cgroup);
  starting_ += std::chrono::steady_clock::now() - before;
  return true;
}

// What running trials may take beyond their reservations.
int64_t TrialStarts::expected_bytes() const {
  int64_t bytes = 0;
  for (const TrialEntry& entry : entries_) {
    if (entry.result.state == TrialState::running) bytes += entry.unreserved_bytes();
  }
  return bytes;
}

}  // namespace headroom
