#include "cli/runs.hpp"
#include "report/wide_table.hpp"

namespace headroom {

namespace {

struct ExportWords {
  std::string run, root = "runs";
  bool csv = false, jsonl = false;
};

}  // namespace

void add_runs_export(CLI::App& runs) {
  auto* command = runs.add_subcommand("export", "Every scalar of a run on stdout: a row a step, a column a metric");
  command->footer("Example: headroom runs export ab12cd --csv > metrics.csv");
  auto words = std::make_shared<ExportWords>();
  command->add_option("run", words->run, "Run folder, or the end of its name")->required();
  add_runs_root(*command, words->root);
  auto* formats = command->add_option_group("format");
  formats->add_flag("--csv", words->csv, "Comma-separated values, with a heading");
  formats->add_flag("--jsonl", words->jsonl, "A JSON object a line");
  formats->require_option(1);
  command->callback([words] {
    const std::filesystem::path run = find_run(words->run, words->root);
    words->csv ? export_csv(run, stdout) : export_jsonl(run, stdout);
  });
}

}  // namespace headroom
