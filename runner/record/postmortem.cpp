#include "record/postmortem.hpp"

#include <csignal>
#include <cstdio>

#include "record/postmortem_facts.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string kind_of(const Ended& ended) {
  switch (ended.end.signal()) {
    case 0:
      break;
    case SIGKILL:
      return ended.oom_kill ? "oom_kill" : "killed";
    case SIGSEGV:
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
      return "crash";
    default:
      return "signal";
  }
  const auto exit = static_cast<Exit>(ended.exit_code());
  return exit == Exit::resumable || exit == Exit::interrupted ? "stopped" : "failed";
}

Json ended_json(const Ended& ended) {
  Json json = {{"kind", kind_of(ended)},         {"sentence", how_it_ended(ended.end, ended.oom_kill)},
               {"exit_code", ended.exit_code()}, {"pid", ended.pid},
               {"seconds", ended.seconds},       {"peak_resident_bytes", ended.end.peak_resident_bytes}};
  if (json["kind"] == "stopped")
    json["sentence"] = std::string(ended.last_forwarded ? "stopped as it was asked to" : "stopped by itself") +
                       ", with exit code " + std::to_string(ended.exit_code());
  if (ended.end.by_signal()) json["signal"] = signal_name(ended.end.signal());
  if (ended.end.core_dumped()) json["core_dumped"] = true;
  if (const auto& last = ended.last_forwarded)
    json["forwarded"] = {{"signal", signal_name(last->signal)}, {"sender", last->sender}};
  if (const auto& kill = ended.oom_kill) {
    json["oom_kill"] = {{"cgroup", kill->cgroup.string()},
                        {"limit_bytes", kill->limit_bytes},
                        {"held_bytes", kill->held_bytes},
                        {"evidence", kill->evidence},
                        {"certain", kill->certain}};
  }
  return json;
}

Postmortem examine(const Ended& ended) {
  Json json = {{"format", 1}, {"time", time_of(now_ms())}, {"source", "supervisor"}, {"ended", ended_json(ended)}};
  json["advice"] = Json::object();
  const fs::path& run = ended.run_folder;
  if (run.empty()) return {json};
  add_resume(json, run);
  const auto box = read_black_box(run / black_box_file);
  if (box && box->pid == ended.pid) add_black_box(json, *box, now_ms());
  const Json summary = summary_since(run, box ? box->started_ms : 0);
  if (json["ended"]["kind"] == "failed" && summary.contains("error")) json["ended"]["error"] = summary["error"];
  return {json};
}

}  // namespace

int conclude(const Ended& ended) {
  const int code = ended.exit_code();
  if (code == 0) return code;
  const Postmortem postmortem = examine(ended);
  if (ended.end.by_signal()) {
    for (const std::string& line : postmortem.lines()) std::fprintf(stderr, "[postmortem] %s\n", line.c_str());
  }
  if (ended.run_folder.empty()) return code;
  try {
    write_file_atomically(ended.run_folder / postmortem_file, postmortem.json.dump(2) + "\n");
  } catch (const Error& problem) {  // a full disk may be what ended the run: the lines have said it
    std::fprintf(stderr, "%s\n", problem.what());
  }
  return code;
}

void forget_postmortem(const fs::path& run) {
  std::error_code none_there;
  fs::remove(run / postmortem_file, none_there);
}

}  // namespace headroom
