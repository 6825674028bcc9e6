// A user's program that gets every event of a run as it is written: for trackers such as W&B or MLflow.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "memory/descriptor.hpp"

namespace headroom {

// If the program ends, hangs or reads too slowly, the run goes on, and one line says so. [control]
class EventCommand {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Starts `command` with the shell, in the working folder and in its own process group; its output goes to stderr.
  // HEADROOM_RUN_FOLDER holds the run's folder. REQUIRES: SIGPIPE is ignored.
  EventCommand(const std::string& command, const std::filesystem::path& run, Say say);
  // Closes its input, waits up to `patience` for its end, and then kills it.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  // Sends one line; `text` has no line break. Never waits: up to 1 MiB of lines that the program has not read yet is
  // kept; further lines are dropped.
  void line(std::string_view text);

  std::chrono::milliseconds patience = std::chrono::seconds(10);

 private:
  bool flush();  // false: the program has stopped reading
  void give_up(const std::string& why);
  bool ends_by(std::chrono::steady_clock::time_point deadline) const;

  Say say_;
  pid_t child_ = -1;  // -1: none, or gone
  Descriptor input_;
  std::string pending_;
  size_t left_out_ = 0;  // lines
};

}  // namespace headroom
