// Commands of a shell, for tests that need programs of the machine.
#pragma once

#include <array>
#include <cstdio>
#include <string>
#include <sys/wait.h>

namespace headroom {

struct Answer {
  int exit_code = -1;
  std::string out;
};

inline Answer shell(const std::string& command) {
  Answer answer;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return answer;
  std::array<char, 4096> block{};
  for (size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;)
    answer.out.append(block.data(), got);
  const int status = ::pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return answer;
}

}  // namespace headroom
