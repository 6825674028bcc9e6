#include "memory/scratch_folder.hpp"

#include <stdlib.h>

#include "error.hpp"
#include "memory/file_memory.hpp"

namespace headroom {

ScratchFolder::ScratchFolder(const std::string& owner) {
  const std::filesystem::path place = temporary_folder_on_disk();
  std::string pattern = (place / ("headroom-" + owner + "-XXXXXX")).string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw Error(Exit::cannot_write, owner, "cannot make a folder in " + place.string());
  path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace headroom
