// One HDF5 file written again with its datasets in the layout that reads fastest, in constant memory.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "arrays/hdf5_copy.hpp"
#include "arrays/hdf5_survey.hpp"

namespace headroom {

// With nothing set: unfiltered datasets become contiguous, filtered ones are copied as they are.
struct RewriteOptions {
  bool contiguous = false;           // filtered datasets too
  std::vector<uint64_t> chunk = {};  // one extent: rows; else one for each axis of the datasets that have as many
  std::optional<int> deflate = {};   // level
  bool shuffle = false;
  bool verify = true;
};

// The layout `object` gets; nothing: it is copied as it is, as small, empty and unusual datasets are.
std::optional<NewLayout> new_layout(const SurveyedObject& object, const RewriteOptions& options);

// Bytes of values done so far, of the number that is to do; may throw to end the work.
using RewriteProgress = std::function<void(uint64_t done, uint64_t all)>;

struct Rewritten {
  uint64_t rewritten = 0, copied = 0;  // datasets
};

// Writes `to`, emptying it first, and reads it back. libhdf5 looks at `from` in a child only. Throws sdk::Error,
// CannotWrite where it is the fault of `to`.
Rewritten rewrite_file(const std::string& from, const std::string& to, const RewriteOptions& options,
                       const RewriteProgress& progress);

}  // namespace headroom
