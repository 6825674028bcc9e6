// `headroom export --format torchscript`: the model of a run as a program, tried on made-up samples and on the run's
// own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "error.hpp"

namespace headroom {

struct ExportRequest {
  std::filesystem::path run;        // a run folder
  std::string checkpoint = "best";  // best | last | path of a checkpoint folder
  std::filesystem::path out;        // the file to write
  std::vector<std::filesystem::path> plugin_dirs;
};

// Prints what was written on stdout. The run's data must be where it was: the program is tried on some of it. Exit::ok,
// or what a signal asked for. Error(bad_input) where there is no such run or checkpoint, or the model cannot be written
// so. [control]
Exit export_script(const ExportRequest& request);

}  // namespace headroom
