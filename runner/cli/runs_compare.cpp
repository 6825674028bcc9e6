#include <cstdio>

#include "cli/runs.hpp"
#include "record/numbers.hpp"
#include "record/run_folder.hpp"
#include "report/comparison.hpp"
#include "report/text_table.hpp"

namespace headroom {

namespace {

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

}  // namespace

void add_runs_compare(CLI::App& runs) {
  auto* command = runs.add_subcommand("compare", "Runs side by side: settings that differ, metrics, equal mathematics");
  command->footer("Example: headroom runs compare ab12cd 34ef56");
  auto words = std::make_shared<CompareWords>();
  command->add_option("runs", words->runs, "Run folders, or the ends of their names")->required()->expected(2, 100);
  add_runs_root(*command, words->root);
  command->add_flag("--json", words->json, "Print JSON");
  command->callback([words] { compare(*words); });
}

}  // namespace headroom
