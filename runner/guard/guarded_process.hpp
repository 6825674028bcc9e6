// The limit that is in force in this process, with the monitor that watches others take its memory, the black box that
// tells of it afterwards, and the sentence of a refused tensor.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>

#include "guard/guard.h"
#include "memory/black_box.hpp"
#include "memory/monitor.hpp"

namespace headroom {

// One for the process, never destroyed. [control] unless a comment says otherwise.
class GuardedProcess {
 public:
  static GuardedProcess& one();

  // Replaces the limit in force. The result is the rule that decided. Error(does_not_fit) where the process holds more
  // already, Error(bad_input) for a text that is no limit or in a process made with fork(), Error(cannot_write) for the
  // box; nothing has changed then.
  std::string limit(const std::string& wanted, const std::optional<std::filesystem::path>& box);

  // Ends monitor and box. The limit stays.
  void end();

  // Notes what is held, in the box too, and says it. [any]
  std::string refused(int64_t bytes);

  // time_ms is 0 where no tensor was refused. [any]
  hr_guard_reading last_refusal();

 private:
  GuardedProcess();
  bool is_forked() const;

  pid_t process_;
  std::unique_ptr<Monitor> monitor_;
  Mutex mutex_;
  std::unique_ptr<BlackBox> box_ GUARDED_BY(mutex_);
  hr_guard_reading refusal_ GUARDED_BY(mutex_){};
};

// Of now. [any]
hr_guard_reading guard_reading();

}  // namespace headroom
