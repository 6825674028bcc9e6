#include <cstdio>

#include "cli/command_line.hpp"
#include "report/run_report.hpp"
#include "report/sweep_report.hpp"

namespace headroom {

void add_report(CLI::App& app) {
  auto* command = app.add_subcommand("report", "Make report.html of a run or a sweep again");
  command->footer("Example: headroom report runs/quick_demo/20261121-063011-3fa2");
  auto folder = std::make_shared<std::string>();
  command->add_option("folder", *folder, "Folder of a run or a sweep")->required();
  command->callback([folder] {
    is_sweep_folder(*folder) ? write_sweep_report(*folder) : write_run_report(*folder);
    std::printf("%s\n", (std::filesystem::path(*folder) / report_file).c_str());
  });
}

}  // namespace headroom
