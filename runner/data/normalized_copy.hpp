// A copy of one file's datasets in which some members are standardised already (`data.normalized_cache`): uncompressed,
// in one piece, and good for one state of the original and one set of statistics.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

// One member of one dataset, whose values in a record are the channels of a field.
struct StandardisedMember {
  std::string dataset, member;  // "/group/name"; member "": the plain elements
  FieldStatistics statistics;
  bool field_is_f32 = true;  // what the field delivers
};

struct NormalizedCopy {
  std::string original;                     // as the source opens it
  std::vector<StandardisedMember> members;  // in the order of their datasets
};

inline constexpr uint64_t copied_at_once_bytes = 4 << 20;          // or one row, where that is larger
inline constexpr std::string_view copy_suffix = ".normalized.h5";  // behind the original's name

// What a copy was made for. [any]
struct CopyMark {
  std::string original, statistics;  // digests of the file on disk, and of what is done to it
  bool operator==(const CopyMark&) const = default;
};
CopyMark mark_of(const NormalizedCopy& copy);         // throws sdk::Error where the original is gone
CopyMark mark_in(const std::filesystem::path& file);  // empty where `file` is no such copy, or cannot be read

// Writes `file` whole or not at all, in a few MiB of memory; `progress` is told of bytes as they are written. Throws
// sdk::Error: what cannot be read or written, and members that cannot hold what the field would: then the copy would
// not give the same values to the bit.
void write_copy(const NormalizedCopy& copy, const std::filesystem::path& file,
                const std::function<void(uint64_t bytes)>& progress);

}  // namespace headroom
