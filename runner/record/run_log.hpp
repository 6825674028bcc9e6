// Everything that a run logs: events.jsonl, metrics.csv, memory.jsonl, TensorBoard, and the terminal. The training loop
// calls this one object; each sink has a file of its own in this folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/run_folder.hpp"

namespace headroom {

using Scalars = std::vector<std::pair<std::string, double>>;  // "train/loss" -> value, in the order shown

// Every function is [any]: a mutex keeps lines whole. Error(cannot_write) when a file cannot grow; output to the
// terminal never fails.
class RunLog {
 public:
  // Appends to files that exist already; when resuming, call truncate() before logging anything. `log_every`: steps
  // between progress lines in a pipe.
  explicit RunLog(const RunFolder& folder, int64_t log_every = 50);
  RunLog();  // says and writes nothing: of a run's processes beside the first
  // Of such a process that may take over, and logs what the first does: keeps what it was given since settled().
  static RunLog standby();
  RunLog(RunLog&&) noexcept;
  ~RunLog();

  // From here on also sends every line of events.jsonl to a user's program (event_command.hpp).
  void send_events_to(const std::string& command);

  void event(const std::string& kind, nlohmann::json fields);  // one line of events.jsonl, with time and kind
  // To events.jsonl, metrics.csv and TensorBoard. `step`: optimizer steps taken; `epoch`: the one they were taken in,
  // from 1.
  void scalars(int64_t step, int64_t epoch, Scalars values);
  void memory(int64_t step, const nlohmann::json& usage,
              const std::string& line);  // memory.jsonl and the users' line on stderr

  // Progress within an epoch: a bar on a terminal (redrawn at most 10 times a second), a line every `log_every` steps
  // in a pipe. `epoch` counts from 0 and is shown from 1. total_steps 0: unknown. `done`: steps of this epoch that an
  // earlier process took. A second begin_epoch() (validation) takes over the bar; end_epoch() prints one line for
  // everything since the last end.
  void begin_epoch(const std::string& title, int64_t epoch, int64_t epochs, int64_t total_steps, int64_t done = 0);
  void progress(int64_t done, const Scalars& values);
  void end_epoch(const Scalars& values);
  void say(const std::string& line);  // one line on stderr, above the bar

  nlohmann::json lengths() const;  // of every growing file by its name, for the checkpoint
  // Cuts every file back to its length in `lengths`, or to its beginning where it is not in there. What is logged next
  // continues the files exactly.
  void truncate(const nlohmann::json& lengths);
  void sync();

  // For standby(), between two processes: the files' lengths at a place that all logs have come to.
  struct Marks {
    uint64_t events = 0, metrics = 0, memory = 0, tensorboard = 0;
  };
  Marks marks() const;
  // The first had come to `marks` where this log is now.
  void settled(const Marks& marks);
  bool is_standby() const;  // and has not taken over
  // The first has ended: its files are cut back to the last marks, and what was kept since follows. From here on this
  // is the run's log. Does nothing where it is not standby.
  void take_over(const RunFolder& folder, int64_t log_every);

 private:
  struct Lines;
  struct Sinks;
  struct Standby;
  bool is_silent() const { return sinks_ == nullptr && standby_ == nullptr; }
  Sinks* sinks() const;  // NULL: nothing is written
  void add(Lines lines);
  std::unique_ptr<Sinks> sinks_;
  std::unique_ptr<Standby> standby_;
};

// Writes summary.json atomically, with "format" and the current "time".
void write_summary(const RunFolder& folder, nlohmann::json summary);

}  // namespace headroom
