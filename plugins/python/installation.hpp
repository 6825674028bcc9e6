// Which Python is used, and what there is of it: told by its program, before any of it is loaded.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace headroom::python {

struct Installation {
  std::filesystem::path program;         // of a virtual environment, where it is one
  std::string version;                   // "3.11.7"
  std::vector<std::string> libraries;    // libpython that exist, best first
  std::vector<std::string> search_path;  // sys.path
  std::string torch_version;             // "": it has no torch
  std::filesystem::path torch_folder;
};

// The program of a Python. `wanted`: a program, a virtual environment, or empty: $VIRTUAL_ENV, $CONDA_PREFIX, then the
// environment that the host's LibTorch lies in; empty where there is none of these. `option`: what gave `wanted`.
// Error(invalid argument) where `wanted` is neither.
std::filesystem::path find_program(const std::filesystem::path& wanted, const std::string& option);

// `wanted` as above, of model.options.python. Error(invalid argument) says where it looked.
Installation find_installation(const std::filesystem::path& wanted);

// Refuses a torch that is not the host's LibTorch, naming both versions: one process has room for one of them.
void require_same_torch(const Installation& python);

// The folder of the host's LibTorch libraries.
std::filesystem::path host_torch_folder();

}  // namespace headroom::python
