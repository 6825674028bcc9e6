// What a run's folder tells where its supervisor wrote nothing.
#include "error.hpp"
#include "memory/proc_file.hpp"
#include "record/json_file.hpp"
#include "record/postmortem.hpp"
#include "record/postmortem_facts.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

int64_t boot_ms() { return number_after(read_proc_file("/proc/stat").value_or(""), "btime").value_or(0) * 1000; }

// Nobody saw the end.
Json vanished_json(const BlackBoxReading& box) {
  const int64_t last_ms = box.records.empty() ? box.started_ms : box.records.back().time_ms;
  std::string kind = "vanished";
  std::string sentence = "ended together with its supervisor, so nobody saw how: its container or job was killed whole";
  if (!box.crash_site.empty()) {
    kind = "crash";
    sentence = "crashed, and its supervisor did not live to say more";
  } else if (last_ms < boot_ms()) {
    sentence = "ended when the machine went down, which has been started anew since";
  }
  return {{"kind", kind}, {"sentence", sentence}, {"pid", box.pid}, {"last_sign_of_life", time_of(last_ms)}};
}

Json summarised_json(const Json& summary) {
  const std::string state = summary.value("state", "");
  Json json = {{"kind", "finished"}, {"state", state}};
  if (state == "failed") {
    json["kind"] = state;
    json["sentence"] = "ended with an error";
  } else if (state == "resumable" || state == "interrupted") {
    json["kind"] = "stopped";
    json["sentence"] = "was stopped before its end and saved a checkpoint";
  } else {
    json["sentence"] = "ended well: " + state + " after " + std::to_string(summary.value("steps", 0)) + " steps, " +
                       std::to_string(summary.value("epochs", 0)) + " epochs";
  }
  if (summary.contains("error")) json["error"] = summary["error"];
  return json;
}

bool is_run(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / "experiment.toml", error) || fs::exists(folder / black_box_file, error);
}

}  // namespace

Postmortem read_postmortem(const fs::path& run) {
  if (!is_run(run)) {
    throw Error(Exit::bad_input, "postmortem",
                run.string() + " is no run folder: give a run's own, runs/<name>/<time>-<id>");
  }
  if (const Json written = read_json_file(run / postmortem_file);
      written.is_object() && written.value("format", 0) == 1)
    return {written};

  Json json = {{"format", 1}, {"time", time_of(now_ms())}, {"source", "run folder"}, {"advice", Json::object()}};
  add_resume(json, run);
  const auto box = read_black_box(run / black_box_file);
  const Json summary = summary_since(run, box ? box->started_ms : 0);
  if (is_being_written(run)) {
    json["ended"] = {{"kind", "running"}, {"sentence", "is running"}, {"pid", box ? box->pid : 0}};
    if (box) add_black_box(json, *box, now_ms());
  } else if (summary.is_object()) {
    json["ended"] = summarised_json(summary);
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

}  // namespace headroom
