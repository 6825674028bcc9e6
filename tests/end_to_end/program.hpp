// The built programs as a user meets them: started with words, ended by signals, judged by exit code, output and what
// they leave behind.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace headroom {

struct Finished {
  int exit_code = -1;  // 128 + signal when a signal ended the front itself
  std::string out, err;
  int64_t peak_resident_bytes = 0;  // of the program and the children it waited for
};

struct StartPlace {
  std::filesystem::path folder;          // working folder
  std::vector<std::string> environment;  // NAME=value, beside the test's own
  std::filesystem::path cgroup = {};     // folder of the cgroup it starts in; empty: the test's own
  bool own_cgroup_namespace = false;     // in which that cgroup is the root; REQUIRES `cgroup`, and unshare(1)
  std::vector<gid_t> groups = {};        // supplementary groups, which root may choose; empty: the test's own
};

// A started `headroom`. Ended with its trainer when the test goes first.
class Program {
 public:
  Program(std::vector<std::string> words, const StartPlace& place);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  pid_t id() const { return id_; }
  pid_t trainer() const;          // waits until there is one; -1 when the program ended before
  void signal(int number) const;  // to the front
  bool ended();
  Finished wait();  // at most five minutes

 private:
  pid_t id_ = -1;
  std::filesystem::path out_, err_;
  bool waited_ = false;
  int status_ = 0;
  int64_t peak_resident_bytes_ = 0;
};

// Runs `headroom` with words to its end.
Finished headroom_program(std::vector<std::string> words, const StartPlace& place);

// Looks every few milliseconds until `condition`; false after a minute.
bool eventually(const std::function<bool()>& condition);

}  // namespace headroom
