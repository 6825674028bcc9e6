// Files besides its own that a dataset's values stand in: behind an external link, a virtual dataset, external storage.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

struct OtherFile {
  std::string path;
  FileIdentity identity = {};  // all 0 where there is no such file: a virtual dataset has fill values there
  bool operator==(const OtherFile&) const = default;
};

// The file that libhdf5 opens for `name`, by which the file at `from`, an absolute path, names another: a relative name
// in the folder of `from`, an absolute one that is not there by its last part. `name` where there is none.
std::string file_named_in(const std::filesystem::path& from, const std::string& name);

// The names of the files that a virtual dataset is put together from, "." for its own; {} for other datasets.
// `creation`: the dataset's properties. REQUIRES Hdf5Lock.
std::vector<std::string> virtual_sources(hid_t creation);

// Of `dataset`, open, which was found in the file at `path`. Without identities. Of a virtual dataset only the files
// that it names itself, by their whole names. REQUIRES Hdf5Lock.
std::vector<OtherFile> other_files_of(hid_t dataset, const std::string& path);

// The same files as they are now. [any]
std::vector<OtherFile> as_they_are(std::vector<OtherFile> files);

// Throws sdk::Error where one of them is not as it was. [any]
void require_unchanged(const std::vector<OtherFile>& files);

}  // namespace headroom
