#include "cli/runs.hpp"

#include <cstdio>

#include "cli/command_line.hpp"
#include "error.hpp"
#include "memory/readable.hpp"
#include "record/numbers.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"
#include "report/comparison.hpp"
#include "report/confusion.hpp"
#include "report/scale.hpp"
#include "report/text_table.hpp"
#include "report/wide_table.hpp"

namespace headroom {

namespace fs = std::filesystem;

void add_runs_root(CLI::App& command, std::string& root) {
  command.add_option("--runs", root, "Folder that holds the runs")->capture_default_str();
}

fs::path find_run(const std::string& word, const fs::path& root) {
  if (is_run_folder(word)) return named_folder(word);
  std::vector<fs::path> found;
  for (const fs::path& run : find_runs(root)) {
    const std::string path = run.string();
    // The word begins where a name or an id does: "2cd" is no end of "ab12cd".
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

namespace {

struct ShowWords {
  std::string run, root = "runs";
  bool json = false;
};

// Confusion matrices and what comes of them; empty where the run has none.
nlohmann::json classes_of(const fs::path& folder) {
  const nlohmann::json summary = read_json_file(folder / "summary.json");
  return summary.is_object() ? summary.value("classes", nlohmann::json()) : nlohmann::json();
}

void show(const ShowWords& words) {
  const fs::path folder = find_run(words.run, words.root);
  RunFacts run = read_run_facts(folder);
  note_running(run);
  const nlohmann::json classes = classes_of(folder);
  if (words.json) {
    nlohmann::json json = run.json();
    if (!classes.empty()) json["classes"] = classes;
    std::printf("%s\n", json_text(json, 2).c_str());
    return;
  }
  std::printf("%s\n", folder.c_str());
  for (const auto& [key, value] : run.words)
    std::printf("  %-24s %s\n", key.c_str(), printable(value, value.size()).c_str());
  // Facts first: metrics are those with a split in their names.
  for (const bool metrics : {false, true}) {
    for (const auto& [key, value] : run.numbers) {
      if ((key.find('/') != std::string::npos) == metrics)
        std::printf("  %-24s %s\n", key.c_str(), shown_fact(run, key).c_str());
    }
  }
  for (const std::string& line : confused_lines(classes)) std::printf("  %s\n", printable(line, line.size()).c_str());
  for (const std::string& line : read_postmortem(folder).lines()) std::printf("%s\n", line.c_str());
}

void add_runs_show(CLI::App& runs) {
  auto* command = runs.add_subcommand("show", "What is known of one run");
  command->footer("Example: headroom runs show ab12cd");
  auto words = std::make_shared<ShowWords>();
  command->add_option("run", words->run, "Run folder, or the end of its name")->required();
  add_runs_root(*command, words->root);
  command->add_flag("--json", words->json, "Print JSON, with every key of the experiment");
  command->callback([words] { show(*words); });
}

struct CompareWords {
  std::vector<std::string> runs;
  std::string root = "runs";
  bool json = false;
};

void print(const char* title, const std::vector<ComparedValue>& list, const std::vector<RunFacts>& runs) {
  if (list.empty()) return;
  std::vector<std::string> heading = {title};
  for (const RunFacts& run : runs) heading.push_back(run.folder.filename().string());
  TextTable table(heading, 1);
  for (const ComparedValue& compared : list) {
    std::vector<std::string> row = {compared.key};
    // Rounded for people; --json has the exact values.
    for (const RunFacts& run : runs) row.push_back(shown_fact(run, compared.key));
    table.add(std::move(row));
  }
  table.print();
  std::printf("\n");
}

void print_identities(const Comparison& comparison, const std::vector<RunFacts>& runs) {
  for (const SameMathematics& group : comparison.identities) {
    std::string names;
    for (const size_t number : group.runs)
      names += (names.empty() ? "" : ", ") + runs[number].folder.filename().string();
    // Without a name of a metric all of them are equal (Agreement).
    const Agreement& found = group.agreement;
    std::string verdict = "all " + std::to_string(found.compared) + " metrics are equal";
    if (!found.metric.empty()) {
      verdict = found.metric + " differs by " + short_number(found.largest_difference) + " of itself, " +
                (found.agrees() ? "within the " : "more than the ") + short_number(found.tolerance) +
                " that is usual for rounding";
      if (!found.agrees())
        verdict +=
            "; rounding grows with every step: to tell it from a mistake, compare runs of few steps "
            "(train.max_steps), or of train.precision = \"fp64\"";
    }
    std::printf("same mathematics (identity %s): %s: %s\n", group.identity.c_str(), names.c_str(), verdict.c_str());
  }
  // Said, because silence would look like agreement.
  if (comparison.identities.empty())
    std::printf("no two of them are the same mathematics, finished at the same step\n");
}

void compare(const CompareWords& words) {
  std::vector<RunFacts> runs;
  for (const std::string& word : words.runs)
    note_running(runs.emplace_back(read_run_facts(find_run(word, words.root))));
  const Comparison comparison = compare_runs(runs);
  if (words.json) {
    std::printf("%s\n", json_text(comparison.json(runs), 2).c_str());
    return;
  }
  print("setting", comparison.settings, runs);
  print("result", comparison.facts, runs);
  print("metric", comparison.metrics, runs);
  print_identities(comparison, runs);
}

void add_runs_compare(CLI::App& runs) {
  auto* command = runs.add_subcommand("compare", "Runs side by side: settings that differ, metrics, equal mathematics");
  command->footer("Example: headroom runs compare ab12cd 34ef56");
  auto words = std::make_shared<CompareWords>();
  command->add_option("runs", words->runs, "Run folders, or the ends of their names")->required()->expected(2, 100);
  add_runs_root(*command, words->root);
  command->add_flag("--json", words->json, "Print JSON");
  command->callback([words] { compare(*words); });
}

struct ExportWords {
  std::string run, root = "runs";
  bool csv = false, jsonl = false;
};

void add_runs_export(CLI::App& runs) {
  auto* command = runs.add_subcommand("export", "Every scalar of a run on stdout: a row a step, a column a metric");
  command->footer("Example: headroom runs export ab12cd --csv > metrics.csv");
  auto words = std::make_shared<ExportWords>();
  command->add_option("run", words->run, "Run folder, or the end of its name")->required();
  add_runs_root(*command, words->root);
  auto* formats = command->add_option_group("format");
  formats->add_flag("--csv", words->csv, "Comma-separated values, with a heading");
  formats->add_flag("--jsonl", words->jsonl, "A JSON object a line");
  // Exactly one of them.
  formats->require_option(1);
  command->callback([words] {
    const fs::path run = find_run(words->run, words->root);
    words->csv ? export_csv(run, stdout) : export_jsonl(run, stdout);
  });
}

}  // namespace

void add_runs(CLI::App& app) {
  auto* runs = app.add_subcommand("runs", "Look at runs: list, show, compare, export");
  runs->require_subcommand(1);
  add_runs_list(*runs);
  add_runs_show(*runs);
  add_runs_compare(*runs);
  add_runs_export(*runs);
}

}  // namespace headroom
