#include "sweep/trial_process.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <system_error>
#include <unistd.h>

#include "error.hpp"
#include "memory/black_box.hpp"
#include "memory/cgroups.hpp"
#include "memory/child_process.hpp"
#include "memory/descriptor.hpp"
#include "memory/supervised.hpp"
#include "record/numbers.hpp"
#include "record/output_file.hpp"
#include "record/run_folder.hpp"

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

// What a cgroup is charged beside a trainer's own memory: its supervisor, page tables, pages of files in use.
constexpr int64_t beside_bytes = int64_t{256} << 20;

bool set_bound(const fs::path& folder, int64_t bytes) {
  // Of cgroup v1; memory.max is of v2.
  const bool v1 = fs::exists(folder / "memory.limit_in_bytes");
  return write(folder / (v1 ? "memory.limit_in_bytes" : "memory.max"), std::to_string(bytes));
}

}  // namespace

// A quarter, because a run keeps to 0.9 of what its cgroup leaves.
int64_t bound_for(int64_t limit_bytes) { return limit_bytes + limit_bytes / 4 + beside_bytes; }

int64_t limit_within(int64_t bound_bytes) { return std::max<int64_t>((bound_bytes - beside_bytes) / 5 * 4, 1); }

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

namespace {

namespace fs = std::filesystem;

// start_trial_process() begins every attempt with a line "== 2026-11-21T06:30:11.042Z headroom run ...". The time tells
// it from what programs write. It may lie within a line, where the attempt before was killed.
size_t attempt_begin(std::string_view log) {
  constexpr std::string_view mark = "== ";
  size_t begin = log.rfind(mark);
  while (begin != std::string_view::npos && !seconds_of(log.substr(begin + mark.size())))
    begin = begin == 0 ? std::string_view::npos : log.rfind(mark, begin - 1);
  return begin;
}

// The last few kilobytes, from the attempt's own first line on.
std::string tail_of(const fs::path& log) {
  constexpr std::streamoff longest = 16 << 10;
  std::ifstream file(log, std::ios::binary | std::ios::ate);
  if (!file) return "";
  const std::streamoff size = file.tellg();
  file.seekg(size > longest ? size - longest : 0);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string tail = text.str();
  const size_t begin = attempt_begin(tail);
  return begin == std::string::npos ? tail : tail.substr(begin);
}

// Headroom's sentences begin with their component, "[data] ..."; where a run came to none, its post-mortem's first one
// says how it ended.
std::string last_sentence(const std::string& text) {
  constexpr std::string_view postmortem = "[postmortem] ";
  std::string sentence, ended, last;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("== ") || line.empty()) continue;
    last = line;
    if (line.starts_with(postmortem)) {
      if (ended.empty()) ended = line.substr(postmortem.size());
    } else if (line.size() > 1 && line[0] == '[' && std::islower(static_cast<unsigned char>(line[1])) != 0) {
      sentence = line;
    }
  }
  if (!sentence.empty()) return sentence;
  return ended.empty() ? last : ended;
}

bool kernel_killed(const fs::path& run, const std::string& log_tail, fs::file_time_type began) {
  std::error_code none;
  const fs::path file = run / "postmortem.json";
  const auto written = fs::last_write_time(file, none);
  // An older post-mortem is of another attempt. If it could not be written, its sentences are in the log.
  if (none || written < began) return log_tail.find("killed by the kernel's OOM killer") != std::string::npos;
  const auto json = read_json_file(file);
  return json.is_object() && json.contains("ended") && json["ended"].is_object() &&
         json["ended"].value("kind", nlohmann::json()) == "oom_kill";
}

// The line with which Slurm's daemon says that a job, or the kernel in the job's cgroup, was over --mem; "" for none.
std::string slurm_memory_line(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool memory = line.find("memory limit") != std::string::npos || line.find("oom-kill") != std::string::npos ||
                        line.find("oom_kill") != std::string::npos;
    if (memory && line.starts_with("slurmstepd")) return line;
  }
  return "";
}

// What tells trials apart in sentences that mean the same: numbers, and with them trials' folders.
std::string without_numbers(const std::string& sentence) {
  std::string text;
  for (const char c : sentence) {
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) text += c;
  }
  return text;
}

}  // namespace

TrialEnd read_trial_end(const TrialFolder& folder, const TrialRecord& record, int exit_code, fs::file_time_type began) {
  const fs::path run = folder.newest_run();
  const std::string tail = tail_of(folder.log());
  TrialEnd end{.exit_code = exit_code, .micro_batch = record.micro_batch, .sentence = last_sentence(tail)};
  end.oom_kill = kernel_killed(run, tail, began);
  if (const std::string line = slurm_memory_line(tail); !line.empty()) {
    end.oom_kill = true;
    end.sentence = "[sweep] Slurm killed its job for holding more than --mem: " + line;
  }
  std::error_code none;
  const auto noted = fs::last_write_time(run / black_box_file, none);  // made anew by each attempt that trains
  end.in_setup = none || noted < began;
  if (const auto box = read_black_box(run / black_box_file); box && box->micro_batch > 0)
    end.micro_batch = box->micro_batch;
  return end;
}

bool TrialEnd::ran_out() const {
  return exit_code == static_cast<int>(Exit::does_not_fit) || (exit_code == static_cast<int>(Exit::killed) && oom_kill);
}

Verdict judge(const TrialEnd& end, const TrialRun& run, const TrialRecord& record) {
  if (run.finished) return Verdict::finished;
  const auto exit = static_cast<Exit>(end.exit_code);
  if (end.ran_out() && end.in_setup) return Verdict::go_on;
  if (end.ran_out())
    return record.retry_micro_batch == 0 && end.micro_batch > 1 ? Verdict::retry_smaller : Verdict::failed;
  constexpr std::array stopped{Exit::resumable, Exit::interrupted, Exit::killed};
  for (const Exit code : stopped) {
    if (exit == code) return Verdict::go_on;
  }
  // A supervisor that a signal ended; also an orphan that another sweep's death left behind, whose exit nobody saw.
  if (end.exit_code > 128) return Verdict::go_on;
  return Verdict::failed;
}

void FailureStorm::add_failure(const std::string& sentence) {
  ++ended_;
  const size_t alike = ++failures_[without_numbers(sentence)];
  // Three quarters, in whole numbers.
  if (alike >= 3 && 4 * alike >= 3 * ended_ && !sentence_) sentence_ = sentence;
}

}  // namespace headroom
