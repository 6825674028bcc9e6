#include <algorithm>
#include <chrono>

#include "memory/growth.hpp"
#include "memory/readable.hpp"
#include "record/checkpoint.hpp"
#include "record/numbers.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

Json where_json(const BlackBoxReading& box) {
  Json json = {{"phase", phase_name(box.phase)},
               {"step", box.step},
               {"epoch", box.epoch},
               {"micro_batch", box.micro_batch},
               {"started", time_of(box.started_ms)}};
  if (!box.plugin_call.empty()) json["plugin_call"] = box.plugin_call;
  if (!box.crash_site.empty()) json["crash_site"] = box.crash_site;
  return json;
}

// "owners" has all holders, "largest" only those that hold something, by size.
Json held_json(const BlackBoxRecord& record) {
  Json owners = Json::object(), largest = Json::array();
  for (size_t holder = 0; holder < holder_count; ++holder)
    owners[std::string(holder_name(holder))] = holder_bytes(record, holder);
  for (const size_t holder : largest_holders(record)) largest.push_back(holder_name(holder));
  return {{"time", time_of(record.time_ms)},
          {"bytes", record.held_bytes},
          {"limit_bytes", record.limit_bytes},
          {"room_bytes", record.room_bytes},
          {"pressure", record.pressure},
          {"owners", owners},
          {"largest", largest}};
}

}  // namespace

int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

fs::path rank_folder(const fs::path& run, int rank) { return run / "ranks" / std::to_string(rank); }

std::string time_of(int64_t ms) { return rfc3339(WallTime(std::chrono::milliseconds(ms))); }

void add_black_box(Json& json, const BlackBoxReading& box, std::optional<int64_t> end_ms) {
  json["where"] = where_json(box);
  // Killed before the first record: where it was is all that is known.
  if (box.records.empty()) return;
  const BlackBoxRecord& last = box.records.back();
  json["held"] = held_json(last);
  // Not below 0: the wall clock may have been set back meanwhile.
  if (end_ms)
    json["held"]["seconds_before_end"] = static_cast<double>(std::max(*end_ms - last.time_ms, int64_t{0})) / 1e3;
  if (const auto growth = what_grew(box.records)) {
    json["growing"] = {
        {"owner", holder_name(growth->holder)}, {"rise_bytes", growth->rise_bytes}, {"seconds", growth->seconds}};
  }
  const auto largest = largest_holders(last);
  if (!largest.empty()) json["advice"]["knob"] = holder_knob(largest.front());
}

void add_resume(Json& json, const fs::path& run) {
  std::error_code error;
  // Absolute, so that it holds wherever the file is read.
  json["run"] = fs::absolute(run, error).lexically_normal().string();
  json["advice"]["resume"] = "headroom run --resume " + shell_word(run.string());
  // As who resumes looks for one: a crash may have come between a checkpoint and the link to it.
  json["advice"]["has_checkpoint"] = Checkpoints(run / "checkpoints").last().has_value();
}

Json summary_since(const fs::path& run, int64_t started_ms) {
  Json summary = read_json_file(run / "summary.json");
  if (!summary.is_object()) return summary;
  // Its own time tells which life of the run wrote it. The file's would not: copies have another, some file systems
  // round it to seconds, and a run may go on at once.
  const Json written = summary.value("time", Json());
  // Times of one form compare as text.
  return written.is_string() && written.get_ref<const std::string&>() < time_of(started_ms) ? Json() : summary;
}

}  // namespace headroom
