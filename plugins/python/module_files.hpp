// The files of a module or dataset: the user's file and what it imports from its own folder, and those in turn.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "headroom/model.hpp"

namespace headroom::python {

// Read from the text of import statements: nothing is run. The file first. Names are relative to the folder that
// imports start from. `option`: what gave it. Error(invalid argument) where `file` cannot be read.
std::vector<sdk::ModelFile> module_files(const std::filesystem::path& file, const std::string& option);

}  // namespace headroom::python
