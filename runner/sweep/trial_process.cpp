#include "sweep/trial_process.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include "memory/cgroups.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/supervised.hpp"
#include "record/numbers.hpp"
#include "record/output_file.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

bool write(const fs::path& file, const std::string& text) {
  std::ofstream stream(file);
  // The kernel refuses a value at the write, so the buffer goes out before it is judged.
  stream << text << std::flush;
  return stream.good();
}

fs::path folder_of_cgroup(const std::string& name) {
  const auto own = memory_cgroup_folders();
  return own.empty() ? fs::path() : own.front() / name;
}

// What a cgroup is charged beside a trainer's own memory: its supervisor, page tables, pages of files in use; and a run
// keeps to 0.9 of what its cgroup leaves.
int64_t bound_for(int64_t limit_bytes) { return limit_bytes + limit_bytes / 4 + (int64_t{256} << 20); }

bool set_bound(const fs::path& folder, int64_t bytes) {
  // Of cgroup v1; memory.max is of v2.
  const bool v1 = fs::exists(folder / "memory.limit_in_bytes");
  return write(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(bytes));
}

}  // namespace

fs::path make_trial_cgroup(const std::string& name, int64_t limit_bytes) {
  const fs::path folder = folder_of_cgroup(name);
  std::error_code error;
  if (folder.empty()) return {};
  // In v2 a cgroup has memory.max only where its parent passes the controller on. A parent that holds processes cannot:
  // then set_bound() fails, too.
  if (fs::exists(folder.parent_path() / "cgroup.subtree_control"))
    write(folder.parent_path() / "cgroup.subtree_control", "+memory");
  fs::create_directory(folder, error);
  if (error) return {};
  if (set_bound(folder, bound_for(limit_bytes))) return folder;
  rmdir(folder.c_str());
  return {};
}

void remove_trial_cgroup(const std::string& name) {
  if (const fs::path folder = folder_of_cgroup(name); !folder.empty()) rmdir(folder.c_str());
}

namespace {

Descriptor open_to_write(const std::filesystem::path& file, int how) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (opened < 0) throw cannot_write(file, errno);
  return Descriptor(opened);
}

}  // namespace

pid_t start_trial_process(const std::filesystem::path& program, const std::vector<std::string>& words,
                          const TrialFolder& folder, int lock, const std::filesystem::path& answer,
                          const std::filesystem::path& cgroup) {
  // Closed at the end here. The lock lasts as long as a child has the open file (flock).
  const Descriptor held(lock), log = open_to_write(folder.log(), O_APPEND);
  const Descriptor answers = answer.empty() ? Descriptor() : open_to_write(answer, O_TRUNC);
  // read_trial_end() knows by this line where the attempt begins in the log.
  std::string line = "== " + rfc3339(std::chrono::system_clock::now()) + " headroom";
  for (const std::string& word : words) line += " " + word;
  line += "\n";
  write_all(log.get(), std::as_bytes(std::span(line)), folder.log());
  std::vector<std::string> all{program.string()};
  all.insert(all.end(), words.begin(), words.end());
  // become_trial() reads both.
  std::vector<std::string> environment{sweep_variable + std::to_string(::getpid())};
  if (!cgroup.empty()) environment.push_back(cgroup_variable + cgroup.string());
  try {
    return start_child(std::move(all), {.environment = std::move(environment),
                                        .stdout_file = answer.empty() ? log.get() : answers.get(),
                                        .stderr_file = log.get(),
                                        .kept_file = held.get()});
  } catch (const std::system_error& problem) {
    throw Error(Exit::bug, "sweep", "cannot start " + program.string() + ": " + problem.code().message());
  }
}

}  // namespace headroom
