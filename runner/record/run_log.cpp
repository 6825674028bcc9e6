#include "record/run_log.hpp"

#include "mutex.hpp"
#include "record/event_command.hpp"
#include "record/numbers.hpp"
#include "record/output_file.hpp"
#include "record/progress.hpp"
#include "record/tensorboard.hpp"

namespace headroom {
namespace {

using nlohmann::ordered_json;

constexpr int summary_format = 1;
constexpr std::string_view metrics_header = "step,epoch,split,metric,value";

// Time and kind first, so that a line is readable as it is.
ordered_json stamped() { return {{"time", rfc3339(std::chrono::system_clock::now())}}; }

// What the line has already wins: members never change its time or kind.
void append_members(ordered_json& line, const nlohmann::json& members) {
  for (const auto& [key, value] : members.items()) {
    if (!line.contains(key)) line[key] = value;
  }
}

// "train/loss" -> "train,loss"; a name without a split leaves its column empty.
std::string split_and_metric(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash == std::string::npos) return "," + csv_field(name);
  return csv_field(name.substr(0, slash)) + "," + csv_field(name.substr(slash + 1));
}

}  // namespace

struct RunLog::Sinks {
  Sinks(const std::filesystem::path& run, int64_t log_every)
      : folder(run),
        events(run / "events.jsonl"),
        metrics(run / "metrics.csv"),
        memory(run / "memory.jsonl"),
        tensorboard(run),
        progress(terminal_of(2), log_every) {
    begin_metrics();
  }

  // Also after the file was cut back to nothing.
  void begin_metrics() REQUIRES(mutex) {
    if (metrics.length() == 0) metrics.line(metrics_header);
  }

  template <typename Visit>
  void for_each_file(Visit visit) REQUIRES(mutex) {
    for (LogFile* file : {&events, &metrics, &memory, &tensorboard.file()}) visit(*file);
  }

  // The file first: it has every event, whatever the command does.
  void event_line(const std::string& text) REQUIRES(mutex) {
    events.line(text);
    if (command) command->line(text);
  }

  Mutex mutex;
  const std::filesystem::path folder;
  LogFile events GUARDED_BY(mutex), metrics GUARDED_BY(mutex), memory GUARDED_BY(mutex);
  TensorBoardFile tensorboard GUARDED_BY(mutex);
  Progress progress GUARDED_BY(mutex);
  // The last member, so the first to go: its last words go through `progress`.
  std::unique_ptr<EventCommand> command GUARDED_BY(mutex);
};

RunLog::RunLog(const RunFolder& folder, int64_t log_every)
    : sinks_(std::make_unique<Sinks>(folder.path(), log_every)) {}

RunLog::RunLog() = default;

RunLog::RunLog(RunLog&&) noexcept = default;

RunLog::~RunLog() = default;

void RunLog::send_events_to(const std::string& command) {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  sinks_->command =
      std::make_unique<EventCommand>(command, sinks_->folder, [sinks = sinks_.get()](const std::string& line) {
        sinks->mutex.is_held();  // or nobody else is left, at its end
        sinks->progress.say(line);
      });
}

void RunLog::event(const std::string& kind, nlohmann::json fields) {
  if (sinks_ == nullptr) return;
  ordered_json line = stamped();
  line["kind"] = kind;
  append_members(line, fields);
  const MutexLock lock(sinks_->mutex);
  sinks_->event_line(json_text(line));
}

void RunLog::scalars(int64_t step, int64_t epoch, const Scalars& values) {
  if (sinks_ == nullptr) return;
  ordered_json line = stamped();
  line["kind"] = "scalars";
  line["step"] = step;
  line["epoch"] = epoch;
  line["values"] = ordered_json::object();
  // All rows in one append: a write that fails leaves none of them.
  std::string rows;
  for (const auto& [name, value] : values) {
    line["values"][name] = value;
    rows += std::to_string(step) + "," + std::to_string(epoch) + "," + split_and_metric(name) + "," +
            exact_number(value) + "\n";
  }
  const MutexLock lock(sinks_->mutex);
  sinks_->event_line(json_text(line));
  sinks_->metrics.append(rows);
  sinks_->tensorboard.scalars(step, values);
}

void RunLog::memory(int64_t step, const nlohmann::json& usage, const std::string& text) {
  if (sinks_ == nullptr) return;
  ordered_json line = stamped();
  line["step"] = step;
  append_members(line, usage);
  const MutexLock lock(sinks_->mutex);
  sinks_->memory.line(json_text(line));
  sinks_->progress.say(text);
}

void RunLog::begin_epoch(const std::string& title, int64_t epoch, int64_t epochs, int64_t total_steps, int64_t done) {
  if (sinks_ == nullptr) return;
  const std::string name = "Epoch " + std::to_string(epoch + 1) + "/" + std::to_string(epochs);
  const MutexLock lock(sinks_->mutex);
  sinks_->progress.begin(name, title, total_steps, done);
}

void RunLog::progress(int64_t done, const Scalars& values) {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  sinks_->progress.update(done, values);
}

void RunLog::end_epoch(const Scalars& values) {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  sinks_->progress.end(values);
}

void RunLog::say(const std::string& line) {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  sinks_->progress.say(line);
}

nlohmann::json RunLog::lengths() const {
  if (sinks_ == nullptr) return nlohmann::json::object();
  const MutexLock lock(sinks_->mutex);
  nlohmann::json lengths = nlohmann::json::object();
  sinks_->for_each_file([&](const LogFile& file) { lengths[file.path().filename().string()] = file.length(); });
  return lengths;
}

void RunLog::truncate(const nlohmann::json& lengths) {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  // A file without a length is all from steps after the checkpoint: nothing of it stays.
  auto length_of = [&](const LogFile& file) -> uint64_t {
    const auto found = lengths.find(file.path().filename().string());
    return found != lengths.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
  };
  for (LogFile* file : {&sinks_->events, &sinks_->metrics, &sinks_->memory}) file->truncate(length_of(*file));
  // By its own class, which keeps the first record.
  sinks_->tensorboard.truncate(length_of(sinks_->tensorboard.file()));
  sinks_->begin_metrics();
}

void RunLog::sync() {
  if (sinks_ == nullptr) return;
  const MutexLock lock(sinks_->mutex);
  sinks_->for_each_file([](LogFile& file) { file.sync(); });
}

void write_summary(const RunFolder& folder, nlohmann::json summary) {
  summary["format"] = summary_format;
  summary["time"] = rfc3339(std::chrono::system_clock::now());
  write_file_atomically(folder.path() / "summary.json", json_text(summary, 2) + "\n");
}

}  // namespace headroom
