#include "record/run_log.hpp"

#include <atomic>

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

// By the names of the files in lengths().
RunLog::Marks marks_in(const nlohmann::json& lengths) {
  RunLog::Marks marks;
  for (const auto& [name, length] : lengths.items()) {
    if (!length.is_number_unsigned()) continue;
    uint64_t& mark = name == "events.jsonl"   ? marks.events
                     : name == "metrics.csv"  ? marks.metrics
                     : name == "memory.jsonl" ? marks.memory
                                              : marks.tensorboard;
    mark = length.get<uint64_t>();
  }
  return marks;
}

}  // namespace

// What one call adds to the files; what is empty adds nothing.
struct RunLog::Lines {
  std::string event = {}, memory = {}, said = {};
  std::optional<int64_t> step = std::nullopt;  // of scalars
  std::string rows = {};
  Scalars values = {};
};

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

  void cut_back(const Marks& marks) REQUIRES(mutex) {
    events.truncate(marks.events);
    metrics.truncate(marks.metrics);
    memory.truncate(marks.memory);
    // By its own class, which keeps the first record.
    tensorboard.truncate(marks.tensorboard);
    begin_metrics();
  }

  // What one call of the log adds to the files.
  void add(const Lines& lines) EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (!lines.event.empty()) event_line(lines.event);
    if (lines.step) {
      metrics.append(lines.rows);
      tensorboard.scalars(*lines.step, lines.values);
    }
    if (!lines.memory.empty()) memory.line(lines.memory);
    if (!lines.said.empty()) progress.say(lines.said);
  }

  Mutex mutex;
  const std::filesystem::path folder;
  LogFile events GUARDED_BY(mutex), metrics GUARDED_BY(mutex), memory GUARDED_BY(mutex);
  TensorBoardFile tensorboard GUARDED_BY(mutex);
  Progress progress GUARDED_BY(mutex);
  // The last member, so the first to go: its last words go through `progress`.
  std::unique_ptr<EventCommand> command GUARDED_BY(mutex);
};

struct RunLog::Standby {
  // false: it has taken over, and the lines are to be written.
  bool keep(Lines& lines) {
    const MutexLock lock(mutex);
    if (log.load() != nullptr) return false;
    kept.push_back(std::move(lines));
    return true;
  }

  Mutex mutex;
  std::vector<Lines> kept GUARDED_BY(mutex);
  Marks marks GUARDED_BY(mutex);
  std::unique_ptr<Sinks> taken_over GUARDED_BY(mutex);
  std::atomic<Sinks*> log = nullptr;
};

RunLog::RunLog(const RunFolder& folder, int64_t log_every)
    : sinks_(std::make_unique<Sinks>(folder.path(), log_every)) {}

RunLog::RunLog() = default;

RunLog::RunLog(RunLog&&) noexcept = default;

RunLog RunLog::standby() {
  RunLog log;
  log.standby_ = std::make_unique<Standby>();
  return log;
}

RunLog::Sinks* RunLog::sinks() const {
  if (sinks_ != nullptr) return sinks_.get();
  return standby_ != nullptr ? standby_->log.load() : nullptr;
}

void RunLog::add(Lines lines) {
  if (standby_ != nullptr && standby_->keep(lines)) return;
  if (Sinks* const sinks = this->sinks()) sinks->add(lines);
}

RunLog::~RunLog() = default;

void RunLog::send_events_to(const std::string& command) {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  sinks->command = std::make_unique<EventCommand>(command, sinks->folder, [sinks](const std::string& line) {
    sinks->mutex.is_held();  // or nobody else is left, at its end
    sinks->progress.say(line);
  });
}

void RunLog::event(const std::string& kind, nlohmann::json fields) {
  if (is_silent()) return;
  ordered_json line = stamped();
  line["kind"] = kind;
  append_members(line, fields);
  add({.event = json_text(line)});
}

void RunLog::scalars(int64_t step, int64_t epoch, Scalars values) {
  if (is_silent()) return;
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
  add({.event = json_text(line), .step = step, .rows = std::move(rows), .values = std::move(values)});
}

void RunLog::memory(int64_t step, const nlohmann::json& usage, const std::string& text) {
  if (is_silent()) return;
  ordered_json line = stamped();
  line["step"] = step;
  append_members(line, usage);
  add({.memory = json_text(line), .said = text});
}

void RunLog::begin_epoch(const std::string& title, int64_t epoch, int64_t epochs, int64_t total_steps, int64_t done) {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const std::string name = "Epoch " + std::to_string(epoch + 1) + "/" + std::to_string(epochs);
  const MutexLock lock(sinks->mutex);
  sinks->progress.begin(name, title, total_steps, done);
}

void RunLog::progress(int64_t done, const Scalars& values) {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  sinks->progress.update(done, values);
}

void RunLog::end_epoch(const Scalars& values) {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  sinks->progress.end(values);
}

void RunLog::say(const std::string& line) {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  sinks->progress.say(line);
}

nlohmann::json RunLog::lengths() const {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return nlohmann::json::object();
  const MutexLock lock(sinks->mutex);
  nlohmann::json lengths = nlohmann::json::object();
  sinks->for_each_file([&](const LogFile& file) { lengths[file.path().filename().string()] = file.length(); });
  return lengths;
}

void RunLog::truncate(const nlohmann::json& lengths) {
  if (standby_ != nullptr) settled(marks_in(lengths));
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  // A file without a length is all from steps after the checkpoint: nothing of it stays.
  auto length_of = [&](const LogFile& file) -> uint64_t {
    const auto found = lengths.find(file.path().filename().string());
    return found != lengths.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
  };
  sinks->cut_back({length_of(sinks->events), length_of(sinks->metrics), length_of(sinks->memory),
                   length_of(sinks->tensorboard.file())});
}

RunLog::Marks RunLog::marks() const {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return {};
  const MutexLock lock(sinks->mutex);
  return {sinks->events.length(), sinks->metrics.length(), sinks->memory.length(), sinks->tensorboard.file().length()};
}

void RunLog::settled(const Marks& marks) {
  if (standby_ == nullptr) return;
  const MutexLock lock(standby_->mutex);
  standby_->kept.clear();
  standby_->marks = marks;
}

bool RunLog::is_standby() const { return standby_ != nullptr && sinks() == nullptr; }

void RunLog::take_over(const RunFolder& folder, int64_t log_every) {
  if (!is_standby()) return;
  const MutexLock lock(standby_->mutex);
  auto made = std::make_unique<Sinks>(folder.path(), log_every);
  {
    const MutexLock files(made->mutex);
    made->cut_back(standby_->marks);
  }
  for (Lines& lines : standby_->kept) {
    lines.said.clear();  // the first has said it
    made->add(lines);
  }
  standby_->kept.clear();
  standby_->taken_over = std::move(made);
  standby_->log = standby_->taken_over.get();
}

void RunLog::sync() {
  Sinks* const sinks = this->sinks();
  if (sinks == nullptr) return;
  const MutexLock lock(sinks->mutex);
  sinks->for_each_file([](LogFile& file) { file.sync(); });
}

void write_summary(const RunFolder& folder, nlohmann::json summary) {
  summary["format"] = summary_format;
  summary["time"] = rfc3339(std::chrono::system_clock::now());
  write_file_atomically(folder.path() / "summary.json", json_text(summary, 2) + "\n");
}

}  // namespace headroom
