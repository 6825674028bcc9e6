// A program of the user's - ffmpeg, Python - that reads a format and writes its values to a pipe.
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
  // Starts words[0], looked up in PATH. Throws Error(bad_input, `absent`) where it is not there.
  ToolOutput(std::vector<std::string> words, const std::string& absent);
  // Ends the program where it still runs.
  ~ToolOutput();
  ToolOutput(const ToolOutput&) = delete;
  ToolOutput& operator=(const ToolOutput&) = delete;

  // Fills `bytes`; fewer at the end of what the program writes.
  size_t read(std::span<std::byte> bytes);
  // The next line without its end, of at most 16 MiB; nullopt at the end.
  std::optional<std::string> line();

  // Reads no more, waits for the program's end, and returns its exit code, 128 + signal.
  int wait();
  // The last line that it wrote to stderr; "".
  std::string complaint() const;

 private:
  bool refill();

  Descriptor pipe_, said_;
  pid_t child_ = -1;
  std::vector<std::byte> buffer_;
  std::span<const std::byte> rest_;  // of the buffer
};

}  // namespace headroom
