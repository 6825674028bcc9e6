#include "cli/watch_report.hpp"

#include <cmath>
#include <csignal>

#include "memory/readable.hpp"
#include "memory/supervisor.hpp"
#include "record/postmortem.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

std::string how_killed(const WatchedDeath& death) {
  ChildEnd end;
  // As waitpid() has it: the signal, and 0x80 where a core was dumped.
  end.status = death.signal | (death.core_dumped ? 0x80 : 0);
  return how_it_ended(end, death.oom_kill);
}

std::string bound_text(const WatchBound& bound) {
  const std::string of = bound.cgroup.empty() ? "the machine" : "cgroup " + bound.cgroup.string();
  return size_text(bound.limit_bytes) + " (" + of + ")";
}

std::string killed_line(const WatchReport& report, const WatchedDeath& death) {
  std::string line = "at " + time_text(seconds_of(death.time_ms)) + " ";
  line += process_text(death.process.name, death.process.pid);
  if (death.is_command) {
    line += ", the command,";
  } else if (death.process.parent == report.pid) {
    line += ", a child of the command,";
  } else if (death.process.parent > 0) {
    line += ", child of process " + std::to_string(death.process.parent) + ",";
  }
  return line + " " + how_killed(death) + " (" + time_of(report.started_ms + death.time_ms) + ")";
}

std::string end_line(const WatchReport& report) {
  const ChildEnd& end = *report.end;
  std::string line = "the command " + how_it_ended(end, std::nullopt);
  // The line before has said how.
  if (const WatchedDeath* death = report.main_death(); death != nullptr && death->is_command)
    line = "the command ended";
  line += " after " + time_text(report.seconds);
  if (report.last_forwarded) {
    line += "; it had been sent " + signal_name(report.last_forwarded->signal) + " by " + report.last_forwarded->sender;
  }
  if (report.left_running > 0) line += "; " + std::to_string(report.left_running) + " of its processes were running on";
  return line;
}

std::string peak_line(const WatchReport& report) {
  const Timeline& timeline = report.timeline;
  // So few looks may have missed the peak by far.
  constexpr size_t too_few = 3;
  if (timeline.samples().size() < too_few) return "too short to be watched";
  return "at most " + size_text(timeline.peak_bytes()) + " together, at " + time_text(seconds_of(timeline.peak_ms())) +
         "; the limit is " + bound_text(report.bound);
}

// What is not the program's and large enough to be spoken of.
bool is_told(const WatchReport& report, int64_t bytes) { return bytes >= report.bound.limit_bytes / 20; }

const char* const files_text = "files in memory (tmpfs, as /dev/shm)";

std::string beside_text(const WatchReport& report, const MemoryAround& around) {
  std::string text;
  if (is_told(report, around.files_bytes)) text = size_text(around.files_bytes) + " of " + files_text;
  if (is_told(report, around.others_bytes))
    text += (text.empty() ? "" : " and ") + size_text(around.others_bytes) + " of other processes";
  return text.empty() ? "" : ", beside " + text;
}

std::string held_line(const WatchReport& report, const WatchedDeath& death) {
  // The kernel's log tells of the moment of the kill; the last look was some time before.
  const int64_t logged = death.oom_kill ? death.oom_kill->held_bytes : 0;
  std::string line = "it held " + size_text(logged > 0 ? logged : death.process.bytes);
  line += logged > 0 ? " when it was killed" : " at the last look";
  return line + ", all together had held " + size_text(death.together_bytes) + " at the last look" +
         beside_text(report, death.around.last) + "; the limit is " + bound_text(report.bound);
}

// Whoever may have taken the room: a process, files in memory, other processes.
struct Grower {
  std::string name;
  int64_t before_bytes = 0, after_bytes = 0;
  double seconds = 0;
  int64_t rise_bytes() const { return after_bytes - before_bytes; }
};

std::string growth_line(const WatchReport& report, const WatchedDeath& death) {
  Grower most;
  if (const auto& growth = death.growth) {
    most = {process_text(death.grower.name, death.grower.pid), growth->before_bytes, growth->after_bytes,
            growth->seconds};
  }
  if (death.oom_kill) {
    // Memory of others is to blame only where memory ran out.
    const auto& [first, last, seconds] = death.around;
    for (const Grower& other : {Grower{files_text, first.files_bytes, last.files_bytes, seconds},
                                Grower{"other processes", first.others_bytes, last.others_bytes, seconds}}) {
      if (is_told(report, other.rise_bytes()) && other.rise_bytes() > most.rise_bytes()) most = other;
    }
  }
  if (most.rise_bytes() == 0) return "nobody had grown before";
  return "grew most in the " + time_text(most.seconds) + " before: " + most.name + ", from " +
         size_text(most.before_bytes) + " to " + size_text(most.after_bytes);
}

// At the last look before `time_ms`.
uint32_t processes_before(const Timeline& timeline, int64_t time_ms) {
  uint32_t processes = 0;
  for (const TimelineSample& sample : timeline.samples()) {
    if (sample.time_ms <= time_ms) processes = sample.processes;
  }
  return processes;
}

std::string advice_line(const WatchReport& report, const WatchedDeath& death) {
  if (death.oom_kill) {
    const MemoryAround& around = death.around.last;
    std::string ways;
    if (is_told(report, around.files_bytes)) ways += std::string("fewer or smaller ") + files_text + ", ";
    if (is_told(report, around.others_bytes)) ways += "fewer other processes beside it, ";
    if (processes_before(report.timeline, death.time_ms) > 1) ways += "fewer or lighter worker processes, ";
    // Under a limit above this it would have gone on for a while.
    const int64_t together = death.together_bytes + around.files_bytes + around.others_bytes;
    return "make room: " + ways + "smaller batches, or a limit above " +
           size_text(std::max(report.timeline.peak_bytes(), together));
  }
  if (death.signal == SIGKILL) return "look for who sent it: a person, the batch system, systemd-oomd, earlyoom";
  return "`ulimit -c unlimited` keeps a core of the next crash";
}

Json oom_json(const OomKill& kill) {
  return {{"cgroup", kill.cgroup.string()},
          {"limit_bytes", kill.limit_bytes},
          {"held_bytes", kill.held_bytes},
          {"evidence", kill.evidence},
          {"certain", kill.certain}};
}

Json death_json(const WatchedDeath& death) {
  Json json = {{"pid", death.process.pid},
               {"name", death.process.name},
               {"command", death.process.command},
               {"parent", death.process.parent},
               {"is_command", death.is_command},
               {"seconds", seconds_of(death.time_ms)},
               {"signal", signal_name(death.signal)},
               {"sentence", how_killed(death)},
               {"last_seen_bytes", death.process.bytes},
               {"together_bytes", death.together_bytes},
               {"other_processes_bytes", death.around.last.others_bytes},
               {"files_in_memory_bytes", death.around.last.files_bytes}};
  if (death.oom_kill) json["oom_kill"] = oom_json(*death.oom_kill);
  if (death.growth) {
    json["grew_most"] = {{"pid", death.grower.pid},
                         {"name", death.grower.name},
                         {"before_bytes", death.growth->before_bytes},
                         {"after_bytes", death.growth->after_bytes},
                         {"seconds", death.growth->seconds}};
  }
  return json;
}

Json series_json(const Timeline& timeline, uint32_t number) {
  const ProcessSeries& series = timeline.series()[number];
  Json bytes = Json::array();
  // One figure a sample, as in samples_json(): 0 where the process was not there.
  for (const TimelineSample& sample : timeline.samples()) bytes.push_back(sample.bytes_of(number));
  return {{"pid", series.pid},
          {"parent", series.parent},
          {"name", series.name},
          {"command", series.command},
          {"first_seconds", seconds_of(series.first_ms)},
          {"last_seconds", seconds_of(series.last_ms)},
          {"peak_bytes", series.peak_bytes},
          {"measured", series.by_rss ? "rss" : "pss"},
          {"bytes", bytes}};
}

// A list a figure, all of one length: the names stand there once, not at every sample.
Json samples_json(const Timeline& timeline) {
  Json json = {{"seconds", Json::array()},    {"total_bytes", Json::array()},   {"processes", Json::array()},
               {"used_bytes", Json::array()}, {"pressure_some", Json::array()}, {"pressure_full", Json::array()}};
  for (const TimelineSample& sample : timeline.samples()) {
    json["seconds"].push_back(seconds_of(sample.time_ms));
    json["total_bytes"].push_back(sample.total_bytes);
    json["processes"].push_back(sample.processes);
    json["used_bytes"].push_back(sample.around.used_bytes);
    json["pressure_some"].push_back(sample.around.some_percent);
    json["pressure_full"].push_back(sample.around.full_percent);
  }
  return json;
}

}  // namespace

std::string process_text(const std::string& name, int64_t pid) {
  return (name.empty() ? "a process" : name) + " (process " + std::to_string(pid) + ")";
}

std::vector<std::string> watch_lines(const WatchReport& report) {
  const WatchedDeath* death = report.main_death();
  std::vector<std::string> lines;
  if (death != nullptr) lines.push_back(killed_line(report, *death));
  lines.push_back(end_line(report));
  if (death == nullptr) {
    lines.back() += "; " + peak_line(report);
  } else {
    lines.push_back(held_line(report, *death));
    lines.push_back(growth_line(report, *death));
    lines.push_back(advice_line(report, *death));
  }
  // PSS of a process of another user may not be read.
  bool by_rss = false;
  for (const ProcessSeries& series : report.timeline.series()) by_rss |= series.by_rss;
  if (by_rss)
    lines.emplace_back("PSS of some processes may not be read: their RSS stands for it, shared memory counts in each");
  return lines;
}

Json watch_json(const WatchReport& report) {
  constexpr size_t shown = 24;
  Json deaths = Json::array(), processes = Json::array(), words = Json::array();
  // Another program's words need not be UTF-8, and dump() would throw at them.
  for (const std::string& word : report.command) words.push_back(printable(word, 1000));
  for (const WatchedDeath& death : report.deaths) deaths.push_back(death_json(death));
  for (const uint32_t number : report.timeline.largest(shown))
    processes.push_back(series_json(report.timeline, number));
  Json json = {{"format", 1},
               {"command", words},
               {"pid", report.pid},
               {"started", time_of(report.started_ms)},
               {"seconds", report.seconds},
               {"state", report.end ? "ended" : "running"},
               {"deaths", deaths},
               {"more_deaths", report.more_deaths},
               {"left_running", report.left_running},
               {"peak_bytes", report.timeline.peak_bytes()},
               {"peak_seconds", seconds_of(report.timeline.peak_ms())},
               {"limit", {{"bytes", report.bound.limit_bytes}, {"cgroup", report.bound.cgroup.string()}}},
               {"samples", samples_json(report.timeline)},
               {"processes", processes}};
  // It runs: the file is renewed until it has an end.
  if (!report.end) return json;
  json["exit_code"] = report.end->exit_code();
  json["peak_resident_bytes"] = report.end->peak_resident_bytes;
  json["verdict"] = watch_lines(report);
  if (const auto& last = report.last_forwarded)
    json["forwarded"] = {{"signal", signal_name(last->signal)}, {"sender", last->sender}};
  return json;
}

}  // namespace headroom
