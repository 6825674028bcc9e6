// The other files that hold values of a dataset: behind an external link, a virtual dataset, or external storage.
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

// The file that libhdf5 opens when the file at `from`, an absolute path, names another as `name`. A relative name is
// looked up in the folder of `from`; an absolute one that does not exist, by its last part. Returns `name` where there
// is no such file.
std::string file_named_in(const std::filesystem::path& from, const std::string& name);

// The names of the files that a virtual dataset consists of, "." for its own file; {} for other datasets. `creation`:
// the dataset's properties. REQUIRES Hdf5Lock.
std::vector<std::string> virtual_sources(hid_t creation);

// The other files of the open `dataset`, which was found in the file at `path`. Without identities. For a virtual
// dataset: only the files that it names by their whole names. REQUIRES Hdf5Lock.
std::vector<OtherFile> other_files_of(hid_t dataset, const std::string& path);

// The same files as they are now. [any]
std::vector<OtherFile> as_they_are(std::vector<OtherFile> files);

// Throws sdk::Error where one of them has changed. [any]
void require_unchanged(const std::vector<OtherFile>& files);

}  // namespace headroom
