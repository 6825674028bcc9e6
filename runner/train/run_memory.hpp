// The memory of one run: its limit, claimed among the runs of the machine; the watch over it; and what it climbs down
// to when the surroundings run short (memory/relief.hpp).
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "config/experiment.hpp"
#include "memory/black_box.hpp"
#include "memory/crash_site.hpp"
#include "memory/monitor.hpp"
#include "memory/relief.hpp"
#include "memory/start_queue.hpp"

namespace headroom {

// A limit is a process's, as a kill is: what the first run of a process claims holds for all that run in it meanwhile.
class ProcessMemory;

class RunMemory {
 public:
  // Claims memory.limit - waiting for it as memory.wait says - and sets it: tensors, batches, caches and what malloc
  // hands out stay within it. `needed_bytes`: without which it cannot run, `wanted_bytes`: the planned peak; 0:
  // unknown. `waited_seconds`: of memory.wait, before. Beside another run of this process it takes part in what that
  // one claimed. Error(does_not_fit). [control]
  // `sharers`: processes of the run on this machine, of which each has an equal part of the limit.
  RunMemory(const Experiment& experiment, int64_t needed_bytes, int64_t wanted_bytes = 0, double waited_seconds = 0,
            int sharers = 1);
  ~RunMemory();
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  bool cancelled() const { return process_ == nullptr; }  // by a signal, while it waited
  const MemoryLimit& limit() const;
  std::string line() const;  // what was decided, for the log

  // From here on the black box `file` is filled, where it can be made, and judge() climbs the ladder; `rung` is told of
  // each step on it. [control]
  void watch(const std::filesystem::path& file, const PressureLadder::Say& say, PressureLadder::Say rung);

  // What the run is doing, for the black box. [any]
  void note(Phase phase) const;
  void note(int64_t step, int64_t epoch, int64_t micro_batch) const;

  // [control] Between two windows.
  void judge();

  // Another part of what the processes of the run on this machine have together. REQUIRES: there is a limit. [control]
  void set_limit(int64_t bytes);
  int64_t limit_bytes() const { return limit_bytes_; }  // 0: off

  // Files may have been written that lie in memory: what is left of the room is looked at before more is asked for.
  void look_again() const;
  bool is_short() const;

  // What the run reserves from now on: what it has needed so far, or what it claimed where that is more. After an epoch
  // it has shown all that it needs, and gives back what it claimed beyond that. [control]
  void settle(bool epoch_done = false);
  int64_t reserved_bytes() const;  // among the runs of the machine

  std::string summary() const;  // "memory: peak 1.2 GiB of 4.0 GiB"

  // {"limit_bytes", "limit_rule", "measured_peak_bytes", "peak_bytes": {owner: bytes}, "pressure": {...}}
  nlohmann::json json() const;

 private:
  std::shared_ptr<ProcessMemory> process_;
  int64_t limit_bytes_ = 0;  // 0: off
  bool epoch_done_ = false;
  std::unique_ptr<BlackBox> box_;
  std::unique_ptr<CrashNotes> crash_notes_;
  std::unique_ptr<PressureLadder> ladder_;
};

}  // namespace headroom
