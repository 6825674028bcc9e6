#include "sweep/trial_entry.hpp"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include "memory/black_box.hpp"
#include "memory/readable.hpp"
#include "record/checkpoint.hpp"
#include "record/numbers.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

// The target of the link, "step-<N>", which changes with every checkpoint.
std::string last_checkpoint(const fs::path& run) {
  std::error_code none;
  return fs::read_symlink(run / "checkpoints" / "last", none).string();
}

}  // namespace

TrialEntry::TrialEntry(const fs::path& sweep, const Trial& trial)
    : folder(sweep, trial.id),
      // A sweep's folder has a random id, and trials begin with their number: unique on this machine.
      cgroup("headroom-" + sweep.filename().string() + "-" + trial.id.substr(0, trial.id.find('_'))) {
  result.trial = &trial;
  result.record = folder.record();
}

bool TrialEntry::settle() {
  const int lock = folder.try_lock();
  if (lock < 0) {
    state() = TrialState::settling;
    return false;
  }
  // It only had to be free: the next attempt takes it for itself.
  ::close(lock);
  result.run = folder.run();
  state() = state_on_disk(result.record, result.run);
  checkpoint = last_checkpoint(result.run.folder);
  return true;
}

void TrialEntry::take_job(int64_t id) {
  result.record.job = id;
  folder.write(result.record);
  state() = TrialState::running;
  std::error_code none;
  // Before the job: whatever it writes is newer, by the clock of the same file system.
  began = fs::last_write_time(folder.job(), none);
  seen_step = -1;
  // What this machine's other runs hold is not what the job lacks.
  outlook = {};
  too_little_bytes = 0;
}

void TrialEntry::look_at() {
  // Once, when it is needed: trial.toml does not change.
  if (std::exchange(looked_at, true)) return;
  const Experiment experiment = load_experiment(folder.experiment());
  shape = shape_of(result.trial->settings, experiment.train);
  limit = experiment.memory.limit;
}

void TrialEntry::decide(TrialState decided, const std::string& why, int code) {
  TrialRecord& record = result.record;
  record.decided = decided;
  record.why = why;
  record.exit_code = code;
  folder.write(record);
  state() = decided;
}

bool TrialEntry::has_begun() const {
  const fs::path run = folder.newest_run();
  std::error_code none;
  return !run.empty() && fs::last_write_time(run / "experiment.toml", none) >= began;
}

int64_t TrialEntry::unreserved_bytes() const {
  if (!has_begun()) return allowed_bytes();
  // A run that began anew has reserved what its plan told it. One that goes on claims what its checkpoint says.
  if (result.run.folder.empty()) return 0;
  const fs::path file = folder.newest_run() / black_box_file;
  std::error_code none;
  const bool is_new = fs::last_write_time(file, none) >= began;  // made anew by each attempt
  const auto box = is_new ? read_black_box(file) : std::nullopt;
  const int64_t held = box && !box->records.empty() ? box->records.back().held_bytes : 0;
  const int64_t reserved =
      is_new ? reserved_bytes_in(read_json_file(folder.newest_run() / "checkpoints/last/checkpoint.json")) : 0;
  return std::max<int64_t>(allowed_bytes() - std::max(held, reserved), 0);
}

RunningRow TrialEntry::row() {
  RunningRow row{.id = id(), .state = std::string(state_name(state())), .position = "", .speed = "", .held = ""};
  if (!queued.empty()) {
    row.state = "queued", row.position = queued;
    return row;
  }
  if (state() != TrialState::running || !has_begun()) return row;
  const auto box = read_black_box(folder.newest_run() / black_box_file);
  if (!box || box->records.empty()) return row;
  const auto now = std::chrono::steady_clock::now();
  // Speed is of the time since the first look: steps before a resume would be too many.
  if (seen_step < 0) seen_step = box->step, seen_at = now;
  const double seconds = std::chrono::duration<double>(now - seen_at).count();
  row.position = "epoch " + std::to_string(box->epoch) + ", step " + std::to_string(box->step);
  if (seconds > 1) row.speed = short_number(static_cast<double>((box->step - seen_step) * shape.window()) / seconds);
  row.held = size_text(box->records.back().held_bytes);
  return row;
}

size_t count(const std::vector<TrialEntry>& entries, bool (*is_such)(TrialState)) {
  return static_cast<size_t>(
      std::ranges::count_if(entries, [&](const TrialEntry& entry) { return is_such(entry.result.state); }));
}

}  // namespace headroom
