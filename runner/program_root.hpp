// Where Headroom is installed. Used by every folder of runner/.
#pragma once

#include <filesystem>
#include <system_error>

namespace headroom {

// The root that a library of Headroom inside another program has set; empty in Headroom's own programs. Never
// destroyed: threads may ask while the process ends.
inline std::filesystem::path& root_of_library() {
  static auto* root = new std::filesystem::path;
  return *root;
}

// The folder that holds bin/, libexec/, lib/headroom and share/headroom: the one above that of the running program, in
// the build folder as where it is installed. Empty where /proc does not tell. [any]
inline std::filesystem::path program_root() {
  if (!root_of_library().empty()) return root_of_library();
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? std::filesystem::path() : program.parent_path().parent_path();
}

// For a library of Headroom inside another program: its own root. [control] Before the first call of program_root().
inline void set_program_root(const std::filesystem::path& root) { root_of_library() = root; }

}  // namespace headroom
