#include "cli/runs.hpp"

#include "cli/command_line.hpp"
#include "error.hpp"
#include "record/numbers.hpp"
#include "report/scale.hpp"

namespace headroom {

namespace fs = std::filesystem;

void add_runs(CLI::App& app) {
  auto* runs = app.add_subcommand("runs", "Look at runs: list, show, compare, export");
  runs->require_subcommand(1);
  add_runs_list(*runs);
  add_runs_show(*runs);
  add_runs_compare(*runs);
  add_runs_export(*runs);
}

void add_runs_root(CLI::App& command, std::string& root) {
  command.add_option("--runs", root, "Folder that holds the runs")->capture_default_str();
}

fs::path find_run(const std::string& word, const fs::path& root) {
  if (is_run_folder(word)) return word;
  std::vector<fs::path> found;
  for (const fs::path& run : find_runs(root)) {
    const std::string path = run.string();
    const bool fits = path.ends_with(word) && !word.empty();
    if (fits && (path.size() == word.size() ||
                 std::string_view("/-").find(path[path.size() - word.size() - 1]) != std::string_view::npos))
      found.push_back(run);
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw Error(Exit::bad_input, "runs",
                word +
                    " is no run: give a run's folder, runs/<name>/<time>-<id>, or the end of its name; `headroom "
                    "runs list` shows those in " +
                    root.string());
  }
  throw Error(Exit::bad_input, "runs",
              word + " may be " + found[0].string() + " or " + found[1].string() + ": give more of its name");
}

std::string shown_fact(const RunFacts& run, const std::string& key) {
  const auto number = run.numbers.find(key);
  if (number == run.numbers.end()) return run.text(key);
  if (key.ends_with("_bytes")) return amount_text(number->second, Quantity::bytes);
  if (key.ends_with("_seconds")) return amount_text(number->second, Quantity::seconds);
  return short_number(number->second);
}

}  // namespace headroom
