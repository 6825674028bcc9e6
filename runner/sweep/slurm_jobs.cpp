#include "sweep/slurm_jobs.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "error.hpp"
#include "memory/child_process.hpp"
#include "memory/tool_output.hpp"

namespace headroom {

namespace {

using Clock = std::chrono::steady_clock;

// The controller of a cluster answers everybody's squeue.
constexpr std::chrono::seconds between_looks{5};
constexpr int64_t mib = int64_t{1} << 20;

// Of squeue_format, in its order; the comment has the rest.
constexpr std::array<size_t, 4> widths{20, 12, 24, 60};

struct Said {
  int exit_code = 0;
  std::string out, complaint;
};

Said ask(std::vector<std::string> words) {
  const std::string program = words.front();
  ToolOutput tool(std::move(words), "sweep",
                  "--on slurm needs Slurm's commands, and " + program +
                      " is not in PATH: start the sweep on a machine that submits jobs to the cluster");
  Said said;
  while (const auto line = tool.line()) said.out += *line + '\n';
  said.exit_code = tool.wait();
  said.complaint = tool.complaint();
  if (said.exit_code != 0 && said.complaint.empty())
    said.complaint = program + " ended with exit code " + std::to_string(said.exit_code);
  return said;
}

template <class Number>
Number number_in(std::string_view text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' '), end = text.find_last_not_of(' ');
  return begin == std::string_view::npos ? "" : std::string(text.substr(begin, end - begin + 1));
}

// In a file name of sbatch's, % begins a field.
std::string without_fields(const std::string& file) {
  std::string text;
  for (const char c : file) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

}  // namespace

const char* const squeue_format = "JobID:20,exit_code:12,State:24,Reason:60,Comment:400";

bool SlurmJob::is_over() const {
  constexpr std::array ends =
      std::to_array<std::string_view>({"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED",
                                       "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE", "REVOKED", "LAUNCH_FAILED"});
  return std::ranges::find(ends, state) != ends.end();
}

bool SlurmJob::is_waiting() const { return !is_over() && state != "RUNNING" && state != "COMPLETING"; }

int SlurmJob::exit_code() const {
  constexpr auto killed = static_cast<int>(Exit::killed);
  if (state == "OUT_OF_MEMORY") return killed;
  const int code = ChildEnd{.status = status}.exit_code();
  return code == 0 && state != "COMPLETED" ? killed : code;
}

std::vector<SlurmJob> read_jobs(const std::string& lines) {
  std::vector<SlurmJob> jobs;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::array<std::string, widths.size()> fields;
    size_t begin = 0;
    for (size_t i = 0; i < widths.size() && begin < line.size(); begin += widths[i++])
      fields[i] = trimmed(std::string_view(line).substr(begin, widths[i]));
    SlurmJob job{.id = number_in<int64_t>(fields[0]), .trial = {}, .state = fields[2], .reason = fields[3]};
    job.status = number_in<int>(fields[1]);
    if (begin < line.size()) job.trial = trimmed(std::string_view(line).substr(begin));
    if (job.id > 0) jobs.push_back(std::move(job));
  }
  return jobs;
}

int64_t largest_node_bytes(const std::string& lines, const std::string& partition) {
  int64_t largest_mib = 0;
  std::istringstream stream(lines);
  for (std::string memory, name; stream >> memory >> name;) {
    // sinfo marks the default one.
    const bool is_default = name.ends_with('*');
    if (is_default) name.pop_back();
    if (partition.empty() ? is_default : name == partition)
      largest_mib = std::max(largest_mib, number_in<int64_t>(memory));
  }
  return largest_mib * mib;
}

std::string partition_of(const std::vector<std::string>& options) {
  const char* usual = std::getenv("SBATCH_PARTITION");
  std::string partition = usual != nullptr ? usual : "";
  for (size_t i = 0; i < options.size(); ++i) {
    const std::string& word = options[i];
    if (word == "-p" || word == "--partition") {
      if (i + 1 < options.size()) partition = options[i + 1];
    } else if (word.starts_with("--partition=")) {
      partition = word.substr(word.find('=') + 1);
    } else if (word.starts_with("-p")) {
      partition = word.substr(2);
    }
  }
  return partition;
}

void require_slurm() {
  for (const char* command : {"sbatch", "squeue", "scancel", "sinfo"}) ask({command, "--version"});
}

SlurmJobs::SlurmJobs(std::string name, std::vector<std::string> options)
    : name_(std::move(name)), options_(std::move(options)) {}

bool SlurmJobs::look() {
  const bool is_due = looked_at_ == Clock::time_point{} || Clock::now() - looked_at_ >= between_looks;
  return is_due && look_now();
}

bool SlurmJobs::look_now() {
  Said said = ask({"squeue", "--noheader", "--states=all", "--name=" + name_, "-O", squeue_format});
  looked_at_ = Clock::now();
  complaint_ = said.exit_code == 0 ? "" : said.complaint;
  // What was known stays: jobs go on while their controller is away.
  if (said.exit_code != 0) return false;
  jobs_ = read_jobs(said.out);
  return has_answered_ = true;
}

const SlurmJob* SlurmJobs::find(int64_t id) const {
  const auto job = std::ranges::find(jobs_, id, &SlurmJob::id);
  return job == jobs_.end() ? nullptr : &*job;
}

std::optional<int64_t> SlurmJobs::submit(const JobRequest& request) {
  std::vector<std::string> words{"sbatch", "--nodes=1", "--ntasks=1",
                                 "--cpus-per-task=" + std::to_string(request.cpus)};
  if (request.memory_bytes > 0)
    words.push_back("--mem=" + std::to_string((request.memory_bytes + mib - 1) / mib) + "M");
  // Two minutes before its time is over, and where it is preempted, the run itself is told to save.
  words.insert(words.end(), {"--requeue", "--signal=B:TERM@120"});
  words.insert(words.end(), options_.begin(), options_.end());
  // The user's options must not hide the job from its sweep.
  words.insert(words.end(), {"--parsable", "--job-name=" + name_, "--comment=" + request.trial, "--open-mode=append",
                             "--output=" + without_fields(request.log.string()), request.script.string()});
  const Said said = ask(std::move(words));
  const auto id = number_in<int64_t>(said.out);
  complaint_ = said.exit_code == 0 ? "" : said.complaint;
  if (said.exit_code != 0 || id == 0) return std::nullopt;
  // Until squeue lists it.
  jobs_.push_back({.id = id, .trial = request.trial, .state = "PENDING", .reason = {}});
  return id;
}

void SlurmJobs::cancel(int64_t id) {
  if (cancelled_.insert(id).second) ask({"scancel", std::to_string(id)});
}

int64_t SlurmJobs::node_bytes() const {
  const Said said = ask({"sinfo", "--noheader", "--exact", "-o", "%m %P"});
  return said.exit_code == 0 ? largest_node_bytes(said.out, partition_of(options_)) : 0;
}

}  // namespace headroom
