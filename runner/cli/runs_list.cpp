#include <cstdio>

#include "cli/runs.hpp"
#include "error.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "report/run_facts.hpp"
#include "report/run_index.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

namespace fs = std::filesystem;

struct ListWords {
  std::string root = "runs", state, name, sort;
  std::vector<std::string> where, show;
  bool descending = false, json = false, csv = false;
};

std::vector<RunFacts> chosen_runs(const ListWords& words) {
  std::error_code error;
  if (!fs::is_directory(words.root, error)) {
    throw Error(
        Exit::bad_input, "runs",
        words.root + ": there is no such folder; go to where `headroom run` was started, or name it with --runs");
  }
  std::vector<RunFilter> filters;
  for (const std::string& text : words.where) filters.emplace_back(text);
  if (!words.state.empty()) filters.emplace_back("state == " + words.state);
  std::vector<RunFacts> chosen;
  for (RunFacts& run : list_runs(words.root, index_file_of(words.root)).runs) {
    const bool named = words.name.empty() || run.word("name").find(words.name) != std::string::npos;
    if (named &&
        std::all_of(filters.begin(), filters.end(), [&](const RunFilter& filter) { return filter.holds(run); }))
      chosen.push_back(std::move(run));
  }
  // The newest last, where a terminal shows it.
  sort_runs(chosen, words.sort.empty() ? "started" : words.sort, words.descending);
  return chosen;
}

// print_table() counts on the places of `started` and `best`.
std::vector<std::string> columns_of(const ListWords& words) {
  std::vector<std::string> columns = {"state", "started", "steps", "best", "peak_bytes", "samples_per_second"};
  columns.insert(columns.end(), words.show.begin(), words.show.end());
  return columns;
}

void print_csv(const std::vector<RunFacts>& runs, const std::vector<std::string>& columns) {
  std::string line = "run,name";
  for (const std::string& column : columns) line += "," + csv_field(column);
  std::printf("%s\n", line.c_str());
  for (const RunFacts& run : runs) {
    line = csv_field(run.folder.string()) + "," + csv_field(run.word("name"));
    // Exact values: a program reads them.
    for (const std::string& column : columns) line += "," + csv_field(run.text(column));
    std::printf("%s\n", line.c_str());
  }
}

void print_json(const std::vector<RunFacts>& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunFacts& run : runs) list.push_back(run.json());
  std::printf("%s\n", json_text(list, 2).c_str());
}

void print_table(const std::vector<RunFacts>& runs, const std::vector<std::string>& columns) {
  std::vector<std::string> heading = columns;
  heading.emplace_back("run");
  // State and start begin at the left; the path at the end may be of any length.
  TextTable table(heading, 2);
  for (const RunFacts& run : runs) {
    std::vector<std::string> row;
    for (const std::string& column : columns) row.push_back(shown_fact(run, column));
    // "2026-11-21T06:30:11.123Z" becomes "2026-11-21 06:30".
    if (row[1].size() > 19) row[1] = row[1].substr(0, 10) + " " + row[1].substr(11, 5);
    if (!run.word("metric").empty()) row[3] = run.word("metric") + " " + row[3];
    row.push_back(run.folder.string());
    table.add(std::move(row));
  }
  table.print();
}

void list(const ListWords& words) {
  const std::vector<RunFacts> runs = chosen_runs(words);
  if (words.json) {
    print_json(runs);
  } else if (words.csv) {
    print_csv(runs, columns_of(words));
  } else if (runs.empty()) {
    std::printf("no runs\n");
  } else {
    print_table(runs, columns_of(words));
  }
}

}  // namespace

void add_runs_list(CLI::App& runs) {
  auto* command = runs.add_subcommand("list", "Runs with their state, metric, memory and speed");
  command->footer("Example: headroom runs list --where 'val/loss < 0.1' --where 'peak_bytes < 1 GiB' --sort val/loss");
  auto words = std::make_shared<ListWords>();
  add_runs_root(*command, words->root);
  command
      ->add_option("--where", words->where,
                   "A key of the run, its metrics or its experiment, compared with a value; "
                   "repeats, and all must hold")
      ->allow_extra_args(false);
  command->add_option("--state", words->state,
                      "finished, stopped_early, failed, resumable, interrupted, ended_badly or running");
  command->add_option("--name", words->name, "Part of the run's name");
  command->add_option("--sort", words->sort, "Key to sort by (default: started)");
  command->add_flag("--descending", words->descending, "Largest first");
  command->add_option("--show", words->show, "One more column, e.g. --show train.batch_size; repeats")
      ->allow_extra_args(false);
  auto* json = command->add_flag("--json", words->json, "Print JSON");
  command->add_flag("--csv", words->csv, "Print CSV")->excludes(json);
  command->callback([words] { list(*words); });
}

}  // namespace headroom
