// A program on the user's machine - ffmpeg, Python, squeue - that writes to a pipe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "memory/descriptor.hpp"

namespace headroom {

class ToolOutput {
 public:
  // Starts words[0], looked up in PATH, for the command `command`, with `environment` (NAME=value) before ours. Throws
  // Error(bad_input, `absent`) where it is missing.
  ToolOutput(std::vector<std::string> words, const std::string& command, const std::string& absent,
             std::vector<std::string> environment = {});
  // Ends the program if it still runs.
  ~ToolOutput();
  ToolOutput(const ToolOutput&) = delete;
  ToolOutput& operator=(const ToolOutput&) = delete;

  // Reads into `bytes`. Returns fewer bytes only at the end of the output.
  size_t read(std::span<std::byte> bytes);
  // The next line without its end, of at most 16 MiB; nullopt at the end.
  std::optional<std::string> line();

  // Closes the pipe, waits for the program's end, and returns its exit code, or 128 + signal.
  int wait();
  // The last line that the program wrote to stderr; "" where there is none.
  std::string complaint() const;

 private:
  bool refill();

  Descriptor pipe_, said_;
  pid_t child_ = -1;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> rest_;  // of the buffer
};

}  // namespace headroom
