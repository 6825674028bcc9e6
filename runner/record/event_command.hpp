// A program of the user's that is told every event of a run as it is written: for trackers such as W&B or MLflow.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "memory/descriptor.hpp"

namespace headroom {

// Whatever the program does - end, hang, read too slowly - the run goes on, and one line says so. [control]
class EventCommand {
 public:
  using Say = std::function<void(const std::string& line)>;

  // Starts `command` with the shell, in the working folder and in a process group of its own; what it writes goes to
  // stderr. HEADROOM_RUN_FOLDER names the run. REQUIRES: SIGPIPE is ignored.
  EventCommand(const std::string& command, const std::filesystem::path& run, Say say);
  // Ends its input and gives it `patience` to end; what is left of it then is killed.
  ~EventCommand();
  EventCommand(const EventCommand&) = delete;
  EventCommand& operator=(const EventCommand&) = delete;

  // `text` without its line break. Never waits: lines that the program does not take yet are kept, up to 1 MiB of them,
  // and what comes then is left out.
  void line(std::string_view text);

  std::chrono::milliseconds patience = std::chrono::seconds(10);

 private:
  bool flush();  // false: the program reads no more
  void give_up(const std::string& why);
  bool ends_by(std::chrono::steady_clock::time_point deadline) const;

  Say say_;
  pid_t child_ = -1;  // -1: none, or gone
  Descriptor input_;
  std::string pending_;
  size_t left_out_ = 0;  // lines
};

}  // namespace headroom
