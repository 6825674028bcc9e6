// `headroom export --format torchscript`: writes the model of a run as a program, and tries it on made-up samples and
// on the run's own.
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

// Prints what was written on stdout. The run's data must still be at its path, because the program is tried on some of
// it. Returns Exit::ok, or the exit code that a signal asked for. Error(bad_input) where the run or the checkpoint does
// not exist, or the model cannot be written in this format. [control]
Exit export_script(const ExportRequest& request);

}  // namespace headroom
