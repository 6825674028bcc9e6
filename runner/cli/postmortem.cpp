#include "record/postmortem.hpp"

#include <cstdio>

#include "cli/commands.hpp"
#include "record/run_folder.hpp"

namespace headroom {

void add_postmortem(CLI::App& app) {
  auto* command = app.add_subcommand("postmortem", "Why a run ended: what it did and held when it did");
  command->footer("Example: headroom postmortem runs/quick_demo/20261121-063011-3fa2");
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command->add_option("run", *run, "Run folder")->required();
  command->add_flag("--json", *json, "Print JSON");
  command->callback([run, json] {
    const Postmortem postmortem = read_postmortem(*run);
    if (*json) {
      std::printf("%s\n", json_text(postmortem.json, 2).c_str());
      return;
    }
    for (const std::string& line : postmortem.lines()) std::printf("%s\n", line.c_str());
  });
}

}  // namespace headroom
