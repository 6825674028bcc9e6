#include <filesystem>
#include <unistd.h>

#include "cli/command_line.hpp"
#include "cli/trainer_program.hpp"
#include "memory/file_memory.hpp"

namespace headroom {

namespace {

// Said before the run rather than after it.
void require_place_for_trace(const std::string& trace) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(trace), folder = file.parent_path();
  if (std::filesystem::is_directory(file, error))
    throw Error(Exit::bad_input, "cli", "--trace " + trace + " is a folder: give the file that is to be written");
  if (!std::filesystem::is_directory(folder, error))
    throw Error(Exit::bad_input, "cli", "--trace " + trace + ": there is no folder " + folder.string());
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(Exit::cannot_write, "cli", "--trace " + trace + ": nothing may be written in " + folder.string());
}

}  // namespace

int profile_in_trainer(const ProfileWords& words, const CommandLine& line) {
  if (!words.trace.empty()) require_place_for_trace(words.trace);
  // Ours, so that it goes with us even where the trainer is killed.
  const ScratchFolder folder("profile");
  std::vector<std::string> arguments = line.arguments;
  arguments.insert(arguments.end(), {"--folder", folder.path().string()});
  return run_trainer(arguments);
}

}  // namespace headroom
