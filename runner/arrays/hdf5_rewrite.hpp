// Rewrites one HDF5 file with its datasets in a layout that reads faster, in constant memory: `headroom data convert`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays/hdf5.hpp"
#include "arrays/inspect.hpp"
#include "arrays/other_files.hpp"

namespace headroom {

struct NewLayout {
  std::string dataset;
  std::vector<uint64_t> chunk;  // {}: contiguous
  int32_t deflate = -1;         // level; negative: none
  bool shuffle = false;
};

struct CopyRequest {
  std::string to;                  // path of the copy; an existing file is overwritten
  std::vector<NewLayout> layouts;  // datasets to create without values
  // An absolute folder whose files are all copied, each to the same place below another; "": this file alone is.
  std::string tree = {};
};

// Copies an HDF5 file, except for the values of datasets that are to get another layout: those are created empty
// (hdf5_copy.cpp). Groups, links, attributes, types and all datasets without a new layout are as in `file`, whose path
// is `path`. A user block keeps its size and is left empty. External links lead where they led: their file is named by
// its absolute path where it is not copied along and the copy lies in another folder. Throws sdk::Error, CannotWrite
// where the copy is at fault. REQUIRES Hdf5Lock.
void copy_without_values(hid_t file, const std::string& path, const CopyRequest& request);

// With nothing set: unfiltered datasets become contiguous, filtered ones are copied as they are.
struct RewriteOptions {
  bool contiguous = false;  // make filtered datasets contiguous too
  // One extent: rows of a chunk. Else one for each axis, of datasets with as many axes.
  std::vector<uint64_t> chunk = {};
  std::optional<int> deflate = {};  // level, 0 to 9
  bool shuffle = false;
  bool verify = true;  // read both files and compare
  // The folder whose files are all rewritten, each to the same place below another; {}: this file alone is.
  std::filesystem::path tree = {};
};

// The layout that `object` gets. nullopt: it is copied as it is, as groups and small or empty datasets are. Throws
// sdk::Error where a chunk would be larger than 64 MiB.
std::optional<NewLayout> new_layout(const SurveyedObject& object, const RewriteOptions& options);

// Called after every block: bytes of values done so far, and in all. May throw to end the work.
using RewriteProgress = std::function<void(uint64_t done, uint64_t all)>;

struct Rewritten {
  uint64_t rewritten = 0, copied = 0;  // numbers of datasets
  std::vector<OtherFile> others = {};  // in which datasets have values
};

// Writes `to`, overwriting it, and compares it with `from` where options.verify. libhdf5 opens `from` in the child
// process only, unless a dataset can be read in no other way. Throws sdk::Error, CannotWrite where `to` is at fault; an
// unfinished `to` is left for the caller to remove.
Rewritten rewrite_file(const std::string& from, const std::string& to, const RewriteOptions& options,
                       const RewriteProgress& progress);

}  // namespace headroom
