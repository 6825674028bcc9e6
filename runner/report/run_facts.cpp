#include "report/run_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <sys/stat.h>
#include <toml++/toml.h>

#include "config/document.hpp"
#include "config/sizes.hpp"
#include "error.hpp"
#include "record/numbers.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string text_of(const toml::node& node) {
  // As it is: a stream would put quotes around it.
  if (const auto* text = node.as_string()) return text->get();
  std::ostringstream stream;
  if (const auto* array = node.as_array()) {
    stream << *array;
  } else {
    // flatten() goes into tables, so none comes here; visit() compiles this for tables all the same.
    node.visit([&](const auto& value) {
      if constexpr (!toml::is_table<decltype(value)>) stream << value;
    });
  }
  return stream.str();
}

void flatten(const toml::table& table, const std::string& prefix, std::map<std::string, std::string>& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      flatten(*inner, name + ".", settings);
    } else {
      settings[name] = text_of(node);
    }
  }
}

void read_settings(RunFacts& run) {
  try {
    flatten(read_one_file(run.folder / "experiment.toml"), "", run.settings);
  } catch (const Error&) {
    // Damaged: then the run has no settings.
  }
}

// The first line of events.jsonl says when a run began and what it is called.
void read_start(RunFacts& run) {
  std::ifstream stream(run.folder / "events.jsonl");
  std::string line;
  if (!std::getline(stream, line)) return;
  // A run that was killed at once may have left half a line.
  const Json start = parse_json(line);
  if (!start.is_object()) return;
  for (const auto& [key, name] : {std::pair("time", "started"), {"name", "name"}, {"identity", "identity"}}) {
    if (start.contains(key) && start[key].is_string()) run.words[name] = start[key];
  }
}

void take(RunFacts& run, const Json& json, const char* key, const char* name) {
  if (!json.is_object() || !json.contains(key)) return;
  const Json& value = json[key];
  if (value.is_number()) run.numbers[name] = value.get<double>();
  if (value.is_string()) run.words[name] = value.get<std::string>();
}

void read_summary(RunFacts& run) {
  const Json summary = read_json_file(run.folder / "summary.json");
  if (!summary.is_object()) return;
  for (const char* key : {"state", "identity", "precision", "device", "steps", "epochs", "train_seconds"})
    take(run, summary, key, key);
  const Json best = summary.value("best", Json()), memory = summary.value("memory", Json());
  take(run, best, "metric", "metric");
  take(run, best, "value", "best");
  take(run, best, "step", "best_step");
  take(run, memory, "measured_peak_bytes", "peak_bytes");
  take(run, memory, "predicted_peak_bytes", "predicted_peak_bytes");
  take(run, memory, "limit_bytes", "limit_bytes");
  if (const Json metrics = summary.value("metrics", Json()); metrics.is_object()) {
    for (const auto& [name, value] : metrics.items()) {
      if (value.is_number()) run.numbers[name] = value.get<double>();
    }
  }
  // Every window counts as a whole one, although the last of an epoch may be smaller.
  const auto steps = run.number("steps"), seconds = run.number("train_seconds");
  const Json window = summary.value("window_samples", Json());
  if (steps && seconds && *seconds > 0 && window.is_number())
    run.numbers["samples_per_second"] = *steps * window.get<double>() / *seconds;
}

// All that read_run_facts() reads.
constexpr const char* stamped_files[] = {"summary.json", "experiment.toml", "postmortem.json", "events.jsonl"};

}  // namespace

std::optional<double> quantity_of(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec == std::errc() && read.ptr == end) return value;
  if (const auto bytes = parse_bytes(text)) return static_cast<double>(*bytes);
  return parse_duration(text);
}

std::string RunFacts::word(const std::string& key) const {
  const auto found = words.find(key);
  return found == words.end() ? "" : found->second;
}

std::string RunFacts::text(const std::string& key) const {
  if (const auto found = words.find(key); found != words.end()) return found->second;
  if (const auto found = numbers.find(key); found != numbers.end()) return exact_number(found->second);
  if (const auto found = settings.find(key); found != settings.end()) return found->second;
  return "";
}

std::optional<double> RunFacts::number(const std::string& key) const {
  if (const auto found = numbers.find(key); found != numbers.end()) return found->second;
  const auto found = settings.find(key);
  return found == settings.end() ? std::nullopt : quantity_of(found->second);
}

std::vector<std::string> RunFacts::metrics() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : numbers) {
    // Only metrics have a slash in their names.
    if (name.find('/') != std::string::npos) names.push_back(name);
  }
  return names;
}

Json RunFacts::json() const {
  Json json = {{"folder", folder.string()}, {"settings", settings}, {"metrics", Json::object()}};
  for (const auto& [key, value] : words) json[key] = value;
  for (const auto& [key, value] : numbers) (key.find('/') == std::string::npos ? json : json["metrics"])[key] = value;
  return json;
}

RunFacts RunFacts::from_json(const Json& json) {
  RunFacts run;
  for (const auto& [key, value] : json.items()) {
    if (key == "folder") {
      run.folder = value.get<std::string>();
    } else if (key == "settings") {
      value.get_to(run.settings);
    } else if (key == "metrics") {
      for (const auto& [name, number] : value.items())
        // JSON has no NaN: it was written as null.
        run.numbers[name] = number.is_null() ? NAN : number.get<double>();
    } else if (value.is_string()) {
      run.words[key] = value;
    } else {
      run.numbers[key] = value.is_null() ? NAN : value.get<double>();
    }
  }
  return run;
}

bool is_run_folder(const fs::path& folder) {
  struct stat status {};
  return ::stat((folder / "experiment.toml").c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

RunFacts read_run_facts(const fs::path& folder) {
  RunFacts run;
  run.folder = folder;
  // The folder is <name>/<time>-<id>; the start event says the name as it was written.
  run.words["name"] = fs::absolute(named_folder(folder)).parent_path().filename().string();
  read_start(run);
  read_summary(run);
  // A post-mortem is of the run's last life (forget_postmortem), the summary perhaps of an earlier one.
  const Json postmortem = read_json_file(folder / postmortem_file);
  const bool has_postmortem = postmortem.is_object() && postmortem.contains("ended");
  if (!run.words.contains("state") || has_postmortem) {
    const Json kind =
        has_postmortem && postmortem["ended"].is_object() ? postmortem["ended"].value("kind", Json()) : Json();
    // Where a trainer that stopped or failed left a summary, the state in it says more.
    const bool was_asked_to = kind == "stopped" || kind == "failed";
    if (!was_asked_to || !run.words.contains("state")) run.words["state"] = kind == "failed" ? "failed" : "ended_badly";
  }
  read_settings(run);
  return run;
}

void note_running(RunFacts& run) {
  if (is_being_written(run.folder)) run.words["state"] = "running";
}

std::string stamp_of(const fs::path& folder) {
  std::string stamp;
  for (const char* file : stamped_files) {
    struct stat status {};
    const bool there = ::stat((folder / file).c_str(), &status) == 0;
    // Only that there are events and a beginning of them matters: they grow all the time.
    const bool grows = std::string_view(file) == "events.jsonl";
    stamp += there && !grows ? std::to_string(status.st_size) + "@" + std::to_string(status.st_mtim.tv_sec) + "." +
                                   std::to_string(status.st_mtim.tv_nsec)
                             : std::to_string(static_cast<int>(there && status.st_size > 0));
    stamp += ' ';
  }
  return stamp;
}

std::vector<fs::path> find_runs(const fs::path& root) {
  // Runs of a sweep are six levels below: <name>/<time>-<id>/trials/<trial>/<name>/<time>-<id>.
  constexpr int deepest = 8;
  std::vector<fs::path> runs;
  std::error_code error;
  fs::recursive_directory_iterator entries(root, fs::directory_options::skip_permission_denied, error), end;
  if (!error && is_run_folder(root)) return {root};
  while (!error && entries != end) {
    std::error_code gone;
    // A link to a run would list that run twice.
    if (!entries->is_directory(gone) || entries->is_symlink(gone)) {
      entries.increment(error);
      continue;
    }
    const bool is_run = is_run_folder(entries->path());
    if (is_run) runs.push_back(entries->path());
    if (is_run || entries.depth() >= deepest) entries.disable_recursion_pending();
    entries.increment(error);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

namespace {

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

template <typename Value>
bool compare(const Value& a, const std::string& how, const Value& b) {
  if (how == "<") return a < b;
  if (how == "<=") return a <= b;
  if (how == ">") return a > b;
  if (how == ">=") return a >= b;
  if (how == "!=") return a != b;
  return a == b;
}

}  // namespace

RunFilter::RunFilter(const std::string& text) {
  // The first of these ends the key; the value may hold more of them.
  const size_t at = text.find_first_of("<>=!");
  if (at != std::string::npos) {
    size_t end = text.find_first_not_of("<>=!", at);
    if (end == std::string::npos) end = text.size();
    key_ = trimmed(text.substr(0, at));
    operator_ = text.substr(at, end - at);
    text_ = trimmed(text.substr(end));
  }
  if (text_.size() >= 2 && (text_.front() == '"' || text_.front() == '\'') && text_.back() == text_.front())
    text_ = text_.substr(1, text_.size() - 2);
  // "=" means "==": compare() takes both for equality.
  constexpr std::array<std::string_view, 7> known = {"<", "<=", ">", ">=", "==", "=", "!="};
  if (key_.empty() || text_.empty() || std::find(known.begin(), known.end(), operator_) == known.end()) {
    throw Error(Exit::bad_input, "cli",
                "--where \"" + text +
                    "\": expected a key, one of < <= > >= == !=, and a value, for example "
                    "--where 'val/loss < 0.1'");
  }
  number_ = quantity_of(text_);
}

bool RunFilter::holds(const RunFacts& run) const {
  const auto number = run.number(key_);
  // As numbers only where both are: as text "10" is below "9".
  if (number && number_) return compare(*number, operator_, *number_);
  const std::string text = run.text(key_);
  if (text.empty()) return operator_ == "!=";
  return compare(text, operator_, text_);
}

void sort_runs(std::vector<RunFacts>& runs, const std::string& key, bool descending) {
  const auto before = [&](const RunFacts& a, const RunFacts& b) {
    const auto value_of = [&](const RunFacts& run) {
      const auto value = run.number(key);
      // NaN is neither above nor below anything, and a sort needs an order: it counts as missing.
      return value && std::isnan(*value) ? std::nullopt : value;
    };
    const auto p = value_of(a), q = value_of(b);
    if (p && q) return descending ? *p > *q : *p < *q;
    if (p.has_value() != q.has_value()) return p.has_value();
    const std::string s = a.text(key), t = b.text(key);
    if (s.empty() != t.empty()) return t.empty();
    return descending ? s > t : s < t;
  };
  std::stable_sort(runs.begin(), runs.end(), before);
}

}  // namespace headroom
