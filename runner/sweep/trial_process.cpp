#include "sweep/trial_process.hpp"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/supervised.hpp"
#include "record/output_file.hpp"
#include "record/timestamps.hpp"

namespace headroom {

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
  const Descriptor held(lock), log = open_to_write(folder.log(), O_APPEND);
  const Descriptor answers = answer.empty() ? Descriptor() : open_to_write(answer, O_TRUNC);
  std::string line = "== " + rfc3339(std::chrono::system_clock::now()) + " headroom";
  for (const std::string& word : words) line += " " + word;
  line += "\n";
  write_all(log.get(), std::as_bytes(std::span(line)), folder.log());
  std::vector<std::string> all{program.string()};
  all.insert(all.end(), words.begin(), words.end());
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
