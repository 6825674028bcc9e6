// Where the running program is installed. Used by every folder of runner/.
#pragma once

#include <filesystem>
#include <system_error>

namespace headroom {

// The folder that holds bin/, libexec/, lib/headroom and share/headroom: the one above that of the running program, in
// the build folder as where it is installed. Empty where /proc does not tell. [any]
inline std::filesystem::path program_root() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? std::filesystem::path() : program.parent_path().parent_path();
}

}  // namespace headroom
