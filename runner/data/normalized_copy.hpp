// One normalised copy: the datasets of one file, contiguous and uncompressed, with some members standardised. It is
// valid for one state of the original and one set of statistics.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

// A member to standardise. The values it has in a record are the channels of a field.
struct StandardisedMember {
  std::string dataset, member;  // "/group/name"; member "": the plain elements
  FieldStatistics statistics;
  bool field_is_f32 = true;  // the field is float32, else float64
};

struct NormalizedCopy {
  std::string original;                     // as the source opens it
  std::vector<StandardisedMember> members;  // in the order of their datasets
};

inline constexpr uint64_t copied_at_once_bytes = 4 << 20;          // of memory; one row, where that is larger
inline constexpr std::string_view copy_suffix = ".normalized.h5";  // behind the original's name

// What a copy was made for. It is stored in the copy as an attribute.
struct CopyMark {
  std::string original,
      statistics;  // digests: of the original's FileIdentity and of other files', and of members and statistics
  bool operator==(const CopyMark&) const = default;
};
CopyMark mark_of(const NormalizedCopy& copy);         // throws sdk::Error where the original cannot be opened; [any]
CopyMark mark_in(const std::filesystem::path& file);  // empty where `file` is no such copy or cannot be read; [any]

// Writes the copy to `file`, whole or not at all, in a few MiB of memory. `progress` gets the bytes of each block.
// Throws sdk::Error where something cannot be read or written, or the original changes meanwhile; and where a member's
// type cannot hold the field's values, so that the copy would not be equal to the bit. [control]
void write_copy(const NormalizedCopy& copy, const std::filesystem::path& file,
                const std::function<void(uint64_t bytes)>& progress);

}  // namespace headroom
