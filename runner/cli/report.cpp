#include <cstdio>

#include "cli/command_line.hpp"
#include "report/run_report.hpp"

namespace headroom {

void add_report(CLI::App& app) {
  auto* command = app.add_subcommand("report", "Make a run's report.html again");
  command->footer("Example: headroom report runs/quick_demo/20261121-063011-3fa2");
  auto run = std::make_shared<std::string>();
  command->add_option("run", *run, "Run folder")->required();
  command->callback([run] {
    write_run_report(*run);
    std::printf("%s\n", (std::filesystem::path(*run) / report_file).c_str());
  });
}

}  // namespace headroom
