// A folder for temporary files that goes with its owner.
#pragma once

#include <filesystem>
#include <string>

namespace headroom {

// Made in temporary_folder_on_disk(); removed at the end of the scope with all that is in it. [control]
class ScratchFolder {
 public:
  // `owner` is part of its name and the component of the Error(cannot_write).
  explicit ScratchFolder(const std::string& owner);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace headroom
