#include "record/postmortem.hpp"

#include <csignal>
#include <cstdio>

#include "error.hpp"
#include "memory/proc_file.hpp"
#include "memory/readable.hpp"
#include "ranks/lost_note.hpp"
#include "ranks/members.hpp"
#include "ranks/ranks.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// docs/postmortem.md lists these words.
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
  // No signal ended it: its own exit code tells.
  const auto exit = static_cast<Exit>(ended.exit_code());
  return exit == Exit::resumable || exit == Exit::interrupted ? "stopped" : "failed";
}

Json ended_json(const Ended& ended) {
  Json json = {{"kind", kind_of(ended)},         {"sentence", how_it_ended(ended.end, ended.oom_kill)},
               {"exit_code", ended.exit_code()}, {"pid", ended.pid},
               {"seconds", ended.seconds},       {"peak_resident_bytes", ended.end.peak_resident_bytes}};
  // What was asked for is no failure; how_it_ended() would only name the exit code.
  if (json["kind"] == "stopped")
    json["sentence"] = std::string(ended.last_forwarded ? "stopped on request" : "stopped by itself") +
                       ", with exit code " + std::to_string(ended.exit_code());
  if (ended.end.by_signal()) json["signal"] = signal_name(ended.end.signal());
  if (ended.end.core_dumped()) json["core_dumped"] = true;
  if (const Ranks ranks = ranks_from_environment(); !ranks.alone()) {
    json["rank"] = ranks.rank;
    json["ranks"] = ranks.count;
    json["host"] = host_name();
    json["sentence"] = ranks.name() + " on host " + host_name() + " " + json["sentence"].get<std::string>();
  }
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
  const Ranks ranks = ranks_from_environment();
  const auto box = read_black_box((ranks.is_first() ? run : rank_folder(run, ranks.number())) / black_box_file);
  // A box of another process is of an earlier life: this one ended before it made its own.
  if (box && box->pid == ended.pid) add_black_box(json, *box, now_ms());
  const Json summary = summary_since(run, now_ms() - static_cast<int64_t>(ended.seconds * 1e3));
  // One that stops by itself may have missed another process of its run.
  const std::string kind = json["ended"]["kind"];
  if ((kind == "failed" || (kind == "stopped" && !ended.last_forwarded)) && summary.contains("error"))
    json["ended"]["error"] = summary["error"];
  if (ranks.alone() || kind != "stopped" || json["ended"].contains("error")) return {json};
  if (const std::string lost = read_lost_note(lost_note_of(run, ranks.number())); !lost.empty())
    json["ended"]["error"] = lost;
  return {json};
}

// Of the ranks of a run, one tells why it ended: one that a signal ended, or else the first, for which the second
// stands in where it is lost.
bool has_most_to_say(const Ended& ended, const Json& told) {
  const Ranks ranks = ranks_from_environment();
  if (ranks.alone() || ended.end.by_signal()) return true;
  std::error_code error;
  const bool stands_in = ranks.number() == 1 && told.contains("error");
  const bool is_first = ranks.number() == first_rank_of(ended.run_folder);
  return (is_first || stands_in) && !fs::exists(ended.run_folder / postmortem_file, error);
}

}  // namespace

int conclude(const Ended& ended) {
  const int code = ended.exit_code();
  if (code == 0) return code;
  const Postmortem postmortem = examine(ended);
  // Other ends have said why on stderr themselves.
  if (ended.end.by_signal()) {
    // A sweep finds these lines in a trial's log by their prefix (sweep/trial_process.cpp).
    for (const std::string& line : postmortem.lines()) std::fprintf(stderr, "[postmortem] %s\n", line.c_str());
  }
  if (ended.run_folder.empty() || !has_most_to_say(ended, postmortem.json["ended"])) return code;
  try {
    write_file_atomically(ended.run_folder / postmortem_file, json_text(postmortem.json, 2) + "\n");
  } catch (const Error& problem) {  // a full disk may be what ended the run: the lines have said it
    std::fprintf(stderr, "%s\n", problem.what());
  }
  return code;
}

void forget_postmortem(const fs::path& run) {
  std::error_code none_there;
  fs::remove(run / postmortem_file, none_there);
}

namespace {

// btime: when the machine started, in seconds since the epoch (proc(5)).
int64_t boot_ms() { return number_after(read_proc_file("/proc/stat").value_or(""), "btime").value_or(0) * 1000; }

// Nobody saw the end.
Json vanished_json(const BlackBoxReading& box) {
  // Without a record there is at least the time when the box was made.
  const int64_t last_ms = box.records.empty() ? box.started_ms : box.records.back().time_ms;
  std::string kind = "vanished";
  std::string sentence =
      "ended together with its supervisor, so the cause is not known: the whole container or job was killed";
  // The crash handler wrote this down before the process died, so it is certain.
  if (!box.crash_site.empty()) {
    kind = "crash";
    sentence = "crashed; its supervisor ended too, so nothing more is known";
  } else if (last_ms < boot_ms()) {
    sentence = "ended when the machine went down; the machine has been restarted since";
  }
  return {{"kind", kind}, {"sentence", sentence}, {"pid", box.pid}, {"last_sign_of_life", time_of(last_ms)}};
}

// Files may come from anybody.
Json damaged_json(const char* file) {
  return {{"kind", "unknown"}, {"sentence", std::string("has ended, and ") + file + ", which says how, is damaged"}};
}

// By the words that train/run_summary.cpp writes for "state".
Json summarised_json(const Json& summary) try {
  const std::string state = summary.value("state", "");
  Json json = {{"kind", "finished"}, {"state", state}};
  if (state == "failed") {
    json["kind"] = state;
    json["sentence"] = "ended with an error";
  } else if (state == "resumable" || state == "interrupted") {
    json["kind"] = "stopped";
    json["sentence"] = "was stopped before its end and saved a checkpoint";
  } else {
    json["sentence"] = "ended well: " + state + " after " + std::to_string(summary.value("steps", int64_t{0})) +
                       " steps, " + std::to_string(summary.value("epochs", int64_t{0})) + " epochs";
  }
  if (summary.contains("error")) json["error"] = summary["error"].get<std::string>();
  return json;
} catch (const Json::exception&) {
  return damaged_json("summary.json");
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "experiment.toml", error) || fs::exists(folder / black_box_file, error);
}

// False: it is of another format. Throws where it is not what its format promises.
bool is_readable(const Json& written) {
  if (!written.is_object() || written.value("format", 0) != 1) return false;
  Postmortem{written}.lines();
  return true;
}

}  // namespace

Postmortem read_postmortem(const fs::path& run) {
  if (!is_run(run)) {
    throw Error(Exit::bad_input, "postmortem",
                run.string() + " is not a run folder: give a run's own, runs/<name>/<time>-<id>");
  }
  Json json = {{"format", 1}, {"time", time_of(now_ms())}, {"source", "run folder"}, {"advice", Json::object()}};
  add_resume(json, run);
  // Of the supervisor, who saw the end. A run that goes on has none (forget_postmortem()).
  const Json written = read_json_file(run / postmortem_file);
  try {
    if (is_readable(written)) return {written};
  } catch (const Json::exception&) {
    json["ended"] = damaged_json(postmortem_file);
    return {json};
  }
  const auto box = read_black_box(run / black_box_file);
  const Json summary = summary_since(run, box ? box->started_ms : 0);
  // The lock first: the summary may be that of the run's earlier life.
  if (is_being_written(run)) {
    json["ended"] = {{"kind", "running"}, {"sentence", "is running"}, {"pid", box ? box->pid : 0}};
    if (box) add_black_box(json, *box, now_ms());
  } else if (summary.is_object()) {
    json["ended"] = summarised_json(summary);
    // Not needed when all went well.
    if (box && json["ended"]["kind"] != "finished") add_black_box(json, *box, std::nullopt);
  } else if (box) {
    json["source"] = "black box";
    json["ended"] = vanished_json(*box);
    add_black_box(json, *box, std::nullopt);
  } else {
    json["ended"] = {{"kind", "unknown"}, {"sentence", "left neither a summary nor a black box: it ended early on"}};
  }
  return {json};
}

namespace {

std::string how_line(const Json& json) {
  const Json& ended = json.at("ended");
  const auto pid = ended.value("pid", int64_t{0});
  std::string line = pid > 0 ? "the trainer (process " + std::to_string(pid) + ") " : "the run ";
  line += ended.at("sentence");
  if (ended.contains("seconds")) line += ", " + time_text(ended["seconds"]) + " after its start";
  if (ended.contains("last_sign_of_life"))
    line += "; last sign of life " + ended["last_sign_of_life"].get<std::string>();
  if (ended.contains("forwarded")) {
    const Json& forwarded = ended["forwarded"];
    line += "; it had been sent " + forwarded.at("signal").get<std::string>() + " by " +
            forwarded.at("sender").get<std::string>();
  }
  if (ended.contains("error")) line += ": " + ended["error"].get<std::string>();
  return line;
}

std::string where_line(const Json& json) {
  const Json& where = json["where"];
  const std::string phase = where.at("phase");
  // After the last step there is no phase to name.
  std::string line = phase == "finished" ? "its last was" : "it was in phase '" + phase + "' of";
  line += " step " + std::to_string(where.at("step").get<int64_t>()) + ", epoch " +
          std::to_string(where.at("epoch").get<int64_t>());
  const auto micro_batch = where.value("micro_batch", int64_t{0});
  if (micro_batch > 0) line += ", micro-batch " + std::to_string(micro_batch);
  if (where.contains("plugin_call"))
    line += ", inside the plugin call '" + where["plugin_call"].get<std::string>() + "'";
  if (where.contains("crash_site")) line += "; it crashed in " + where["crash_site"].get<std::string>();
  return line;
}

std::string largest_text(const Json& held) {
  constexpr size_t shown = 4;
  std::string text;
  for (size_t i = 0; i < held.at("largest").size() && i < shown; ++i) {
    const std::string owner = held["largest"][i];
    text += (i == 0 ? "; largest: " : ", ") + owner + " " + size_text(held.at("owners").at(owner));
  }
  return text;
}

std::string held_line(const Json& json) {
  const Json& ended = json.at("ended");
  if (!json.contains("held")) {
    // wait4() tells the peak even of a process that left no black box.
    const auto peak = ended.value("peak_resident_bytes", int64_t{0});
    return peak > 0 ? "it held at most " + size_text(peak) + " resident; nothing is known by owner"
                    : "what it held is not known";
  }
  const Json& held = json["held"];
  std::string line = "it held " + size_text(held.at("bytes"));
  const auto limit = held.value("limit_bytes", int64_t{0});
  line += limit > 0 ? " of a memory.limit of " + size_text(limit) : ", without a memory.limit";
  line += ", with room for " + size_text(held.at("room_bytes")) + " more";
  if (held.contains("seconds_before_end")) line += ", " + time_text(held["seconds_before_end"]) + " before";
  return line + largest_text(held);
}

std::string growing_line(const Json& json) {
  if (!json.contains("held")) return "what was growing is not known";
  if (!json.contains("growing")) return "nothing was growing";
  const Json& growing = json["growing"];
  return "growing: " + growing.at("owner").get<std::string>() + ", by " + size_text(growing.at("rise_bytes")) +
         " within " + time_text(growing.at("seconds"));
}

// What this end asks for, before the knob that any end asks for.
std::string remedy(const Json& json) {
  const std::string kind = json.at("ended").at("kind");
  const auto limit = json.contains("held") ? json["held"].value("limit_bytes", int64_t{0}) : 0;
  if (kind == "oom_kill") {
    const auto kernels = json["ended"]["oom_kill"].value("limit_bytes", int64_t{0});
    if (limit == 0) return "set memory.limit = \"auto\", which stays below the kernel's limit";
    if (limit > kernels) return "set memory.limit below " + size_text(kernels) + ", the kernel's limit";
    // The limit was not above the kernel's: others in the same cgroup or machine took the difference.
    return "other processes took the rest: set a lower memory.limit";
  }
  if (kind == "killed") return "find out who sent it: a person, the batch system, systemd-oomd, earlyoom";
  if (kind == "crash")
    return "run `headroom plugins check` on its plugins; `ulimit -c unlimited` keeps a core next time";
  if (kind == "vanished") return "ask the container's or batch system's log why it was killed";
  return "";
}

std::string advice_line(const Json& json) {
  const Json& advice = json.at("advice");
  std::string line;
  const auto add = [&line](const std::string& text) {
    if (!text.empty()) line += (line.empty() ? "" : "; ") + text;
  };
  if (advice.contains("resume")) {
    const bool anew = !advice.value("has_checkpoint", false);
    add("go on with: " + advice["resume"].get<std::string>() +
        (anew ? " (no checkpoint yet: it starts from the beginning)" : ""));
  }
  add(remedy(json));
  const std::string kind = json.at("ended").at("kind");
  // Only where memory may be the reason: elsewhere the knob would be bad advice.
  const bool for_memory = kind == "oom_kill" || kind == "killed" || kind == "vanished";
  if (for_memory && advice.contains("knob")) add("to hold less: " + advice["knob"].get<std::string>());
  return line.empty() ? "start it again" : line;
}

}  // namespace

std::vector<std::string> Postmortem::lines() const {
  // All five lines only where the black box tells where the run was.
  const std::string kind = json.at("ended").at("kind");
  if (kind == "finished" || kind == "unknown") return {how_line(json)};
  if (!json.contains("where")) return {how_line(json), held_line(json), advice_line(json)};
  std::vector<std::string> lines = {how_line(json), where_line(json), held_line(json), growing_line(json)};
  if (kind != "running") lines.push_back(advice_line(json));
  return lines;
}

}  // namespace headroom
