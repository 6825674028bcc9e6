// A post-mortem as five lines: how it ended, where it was, what it held, what was growing, what to do.
#include "memory/readable.hpp"
#include "record/postmortem.hpp"

namespace headroom {

namespace {

using Json = nlohmann::json;

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
    return "what was beside the trainer took the rest: set a lower memory.limit";
  }
  if (kind == "killed") return "look for who sent it: a person, the batch system, systemd-oomd, earlyoom";
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
    add("go on with: " + advice["resume"].get<std::string>() + (anew ? " (no checkpoint yet: it begins anew)" : ""));
  }
  add(remedy(json));
  const std::string kind = json.at("ended").at("kind");
  const bool for_memory = kind == "oom_kill" || kind == "killed" || kind == "vanished";
  if (for_memory && advice.contains("knob")) add("to hold less: " + advice["knob"].get<std::string>());
  return line.empty() ? "start it again" : line;
}

}  // namespace

std::vector<std::string> Postmortem::lines() const {
  const std::string kind = json.at("ended").at("kind");
  if (kind == "finished" || kind == "unknown") return {how_line(json)};
  if (!json.contains("where")) return {how_line(json), held_line(json), advice_line(json)};
  std::vector<std::string> lines = {how_line(json), where_line(json), held_line(json), growing_line(json)};
  if (kind != "running") lines.push_back(advice_line(json));
  return lines;
}

}  // namespace headroom
