// The experiment files that come with the program, in <executable>/../share/headroom/experiments. Each has a name: its
// path there without .toml, "quick_demo" or "emg/low_memory".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom {

// The file that `word` means, on the command line or in `extends`: the one at `path`, the word made a path; where no
// file is there, the program's own experiment of that name; where there is none, `path`.
std::filesystem::path experiment_file(const std::filesystem::path& path, const std::filesystem::path& word);

// The names of the program's own experiments, those in no folder first.
std::vector<std::string> own_experiment_names();

// The folder that relative paths in `file` lead from: its own. The program's own experiments count as files in the
// folder `experiments` of the working folder, so that what they write, as data that [data.synth] makes, lies there and
// not beside the program.
std::filesystem::path folder_of_paths(const std::filesystem::path& file);

}  // namespace headroom
