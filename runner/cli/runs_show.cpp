#include <cstdio>

#include "cli/runs.hpp"
#include "record/postmortem.hpp"
#include "record/run_folder.hpp"

namespace headroom {

namespace {

struct ShowWords {
  std::string run, root = "runs";
  bool json = false;
};

void show(const ShowWords& words) {
  const std::filesystem::path folder = find_run(words.run, words.root);
  RunFacts run = read_run_facts(folder);
  if (is_being_written(folder)) run.words["state"] = "running";
  if (words.json) {
    std::printf("%s\n", run.json().dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    return;
  }
  std::printf("%s\n", folder.c_str());
  for (const auto& [key, value] : run.words) std::printf("  %-24s %s\n", key.c_str(), value.c_str());
  for (const bool metrics : {false, true}) {
    for (const auto& [key, value] : run.numbers) {
      if ((key.find('/') != std::string::npos) == metrics)
        std::printf("  %-24s %s\n", key.c_str(), shown_fact(run, key).c_str());
    }
  }
  for (const std::string& line : read_postmortem(folder).lines()) std::printf("%s\n", line.c_str());
}

}  // namespace

void add_runs_show(CLI::App& runs) {
  auto* command = runs.add_subcommand("show", "What is known of one run");
  command->footer("Example: headroom runs show ab12cd");
  auto words = std::make_shared<ShowWords>();
  command->add_option("run", words->run, "Run folder, or the end of its name")->required();
  add_runs_root(*command, words->root);
  command->add_flag("--json", words->json, "Print JSON, with every key of the experiment");
  command->callback([words] { show(*words); });
}

}  // namespace headroom
