#include "report/run_reading.hpp"

#include <fstream>
#include <functional>

#include "memory/black_box.hpp"
#include "memory/growth.hpp"
#include "record/numbers.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// A log may name any number of these: the reading and the page stay small.
constexpr size_t most_metrics = 256, most_kinds = 32, most_owners = 32, kept_events = 10;

// Wall clock to seconds in which the run ran: the time between a process that ended and the one that resumed is left
// out.
class RunningTime {
 public:
  void start(double seconds) {
    if (!gaps_.empty()) return;
    gaps_.push_back({seconds, seconds});
  }
  void resume(double last, double seconds) { gaps_.push_back({seconds, gaps_.back().offset + (seconds - last)}); }
  double of(double seconds) const {
    for (size_t i = gaps_.size(); i-- > 0;) {
      if (i == 0 || seconds >= gaps_[i].from) return gaps_.empty() ? 0 : std::max(0.0, seconds - gaps_[i].offset);
    }
    return 0;
  }

 private:
  // From wall clock `from` on, `offset` is what to take off it; the first one is the start of the run.
  struct Gap {
    double from, offset;
  };
  std::vector<Gap> gaps_;
};

void for_each_line(const fs::path& file, int64_t& torn, const std::function<void(const Json&)>& visit) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    // A process that is killed may leave half a line: the rest of the file counts all the same.
    const Json json = parse_json(line);
    if (json.is_object()) {
      visit(json);
    } else {
      ++torn;
    }
  }
}

std::optional<double> time_in(const Json& line) {
  const auto time = line.find("time");
  return time != line.end() && time->is_string() ? seconds_of(time->get_ref<const std::string&>()) : std::nullopt;
}

// A member of another type counts as missing, because get() would throw.
template <typename Value>
Value value_of(const Json& json, const char* key, Value otherwise) {
  const auto found = json.find(key);
  if (found == json.end()) return otherwise;
  if constexpr (std::is_same_v<Value, std::string>) {
    return found->is_string() ? found->get<std::string>() : otherwise;
  } else {
    return found->is_number() ? found->get<Value>() : otherwise;
  }
}

class Reader {
 public:
  explicit Reader(RunReading& run) : run_(run) {}

  void events() {
    double last = 0;
    for_each_line(run_.folder / "events.jsonl", run_.torn_lines, [&](const Json& line) {
      // A line without a time counts as one of the moment before.
      const double time = time_in(line).value_or(last);
      const std::string kind = value_of(line, "kind", std::string());
      time_.start(time);
      if (kind == "resume") time_.resume(std::max(last, 0.0), time);
      last = std::max(last, time);
      // Scalars are drawn over steps, all other events over time.
      if (kind == "scalars") return scalars(line);
      if (kind == "start") run_.start = line;
      event(kind, line, time_.of(time));
    });
  }

  // memory.jsonl for the whole run, and the black box for its last minutes, four times a second.
  void memory() {
    const auto box = read_black_box(run_.folder / black_box_file);
    // Both files are in order of time. They are merged, because Decimated takes its points in order.
    size_t next = 0;
    const auto boxed_until = [&](double time) {
      for (; box && next < box->records.size(); ++next) {
        const BlackBoxRecord& record = box->records[next];
        const double at = static_cast<double>(record.time_ms) / 1e3;
        if (at > time) return;
        if (record.limit_bytes > 0) run_.limit_bytes = record.limit_bytes;
        time_.start(at);
        boxed(record, time_.of(at));
      }
    };
    for_each_line(run_.folder / "memory.jsonl", run_.torn_lines, [&](const Json& line) {
      const auto time = time_in(line);
      if (!time) return;
      time_.start(*time);
      boxed_until(*time);
      logged(line, time_.of(*time));
    });
    boxed_until(INFINITY);
  }

 private:
  void scalars(const Json& line) {
    const auto values = line.find("values");
    if (values == line.end() || !values->is_object()) return;
    const auto step = value_of(line, "step", 0.0);
    for (const auto& [name, value] : values->items()) {
      MetricCurve* curve = curve_of(name);
      if (curve != nullptr && value.is_number())
        curve->points.add(step, Extremes::of(step, value.get<double>()));  // null: not finite
    }
  }

  MetricCurve* curve_of(const std::string& name) {
    for (MetricCurve& curve : run_.metrics) {
      if (curve.name == name) return &curve;
    }
    if (run_.metrics.size() == most_metrics) {
      ++run_.metrics_left_out;
      return nullptr;
    }
    // Charts of metrics stand side by side, so fewer columns than usual will do.
    return &run_.metrics.emplace_back(MetricCurve{name, Decimated<Extremes>(300)});
  }

  void event(const std::string& kind, const Json& line, double seconds) {
    auto found = std::find_if(run_.events.begin(), run_.events.end(), [&](const auto& e) { return e.kind == kind; });
    if (found == run_.events.end()) {
      if (run_.events.size() == most_kinds) return;
      run_.events.emplace_back().kind = kind;
      found = run_.events.end() - 1;
    }
    ++found->count;
    found->at.add(seconds, {1});
    // Long lines, and the page has the last of them from the summary.
    if (kind == "channels" || kind == "classes") return;
    if (found->first.size() < kept_events) {
      found->first.push_back(line);
    } else {
      found->last.push_back(line);
      if (found->last.size() > kept_events) found->last.pop_front();
    }
  }

  size_t owner(const std::string& name) {
    auto& owners = run_.memory.owners;
    const auto found = std::find(owners.begin(), owners.end(), name);
    if (found == owners.end() && owners.size() < most_owners) {
      owners.push_back(name);
      return owners.size() - 1;
    }
    return static_cast<size_t>(found - owners.begin());
  }

  void hold(HeldMoment& moment, const std::string& name, double bytes) {
    const size_t number = owner(name);
    if (number >= run_.memory.owners.size()) return;
    // Owners are numbered as they come: earlier moments keep their shorter lists.
    if (moment.owner_bytes.size() <= number) moment.owner_bytes.resize(number + 1, 0.0);
    moment.owner_bytes[number] = std::max(bytes, 0.0);
  }

  // Every "<owner>_bytes" but those that speak of the process as a whole or of the machine.
  void logged(const Json& line, double seconds) {
    HeldMoment moment;
    moment.held_bytes = value_of(line, "held_bytes", 0.0);
    for (const auto& [key, value] : line.items()) {
      const bool whole = key == "held_bytes" || key == "process_bytes" || key.starts_with("system_");
      if (!whole && key.ends_with("_bytes") && value.is_number())
        hold(moment, key.substr(0, key.size() - 6), value.get<double>());
    }
    run_.memory.moments.add(seconds, moment);
  }

  void boxed(const BlackBoxRecord& record, double seconds) {
    if (record.held_bytes == 0) return;
    HeldMoment moment;
    moment.held_bytes = static_cast<double>(record.held_bytes);
    for (size_t holder = 0; holder < holder_count; ++holder)
      // Names of holders are those of memory.jsonl, without "_bytes".
      hold(moment, std::string(holder_name(holder)), static_cast<double>(holder_bytes(record, holder)));
    run_.memory.moments.add(seconds, moment);
  }

  RunReading& run_;
  RunningTime time_;
};

std::string read_whole(const fs::path& file) {
  // The page holds the whole text, and no experiment file comes near this.
  constexpr size_t longest = size_t{1} << 20;
  std::string text(longest, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(stream.gcount(), 0)));
  return text;
}

void read_end(RunReading& run) {
  const Postmortem postmortem = read_postmortem(run.folder);
  run.postmortem = postmortem.lines();
  const std::string kind = postmortem.json.at("ended").at("kind");
  run.ended_badly = kind != "finished" && kind != "running";
}

}  // namespace

const MetricCurve* RunReading::metric(const std::string& name) const {
  for (const MetricCurve& curve : metrics) {
    if (curve.name == name) return &curve;
  }
  return nullptr;
}

RunReading read_run(const fs::path& folder) {
  RunReading run;
  run.folder = folder;
  read_end(run);  // refuses what is no run
  run.summary = read_json_file(folder / "summary.json");
  if (!run.summary.is_object()) run.summary = Json();
  run.experiment_toml = read_whole(folder / "experiment.toml");
  Reader reader(run);
  reader.events();
  reader.memory();
  // The summary's limit is the one that was decided; the black box only repeats it.
  if (run.summary.is_object() && run.summary.contains("memory") && run.summary["memory"].is_object())
    run.limit_bytes = value_of(run.summary["memory"], "limit_bytes", run.limit_bytes);
  return run;
}

}  // namespace headroom
