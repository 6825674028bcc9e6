// Copies of a source's files with fields standardised already (`data.normalized_cache`). They are found or made at the
// start, then read instead of the originals.
//
// The host serves a source's arrays, so it can read a dataset from another file without the source's help. Which
// dataset holds a field unchanged only the source knows; it says so by hr_datasource.origin. The copy is one of
// datasets, as large as the original. A copy of samples would be larger by as much as windows overlap. All other
// datasets are read from the original.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
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

// One copy: the datasets of one file, contiguous and uncompressed, with some members standardised. It is valid for one
// state of the original and one set of statistics. What it takes to make one is in normalized_copy.cpp.
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

struct NormalizedCopies {
  std::shared_ptr<const Source> source;  // to read from: the one given, or what `reopen` returned
  std::vector<std::string> fields;       // those it delivers standardised; empty: no copies are used
  std::vector<std::string> lines;        // for the log
};

// Either every file of a field has its copy, or no copies are used: an error becomes a line, and the originals are
// read. A copy lies beside its file as `<file>.normalized.h5`. It lies in the user's cache folder where that place
// cannot be written, or is taken by a copy with other statistics, which another run may be reading.
//
// The source's word is checked: some samples of every split must have the same bytes with and without copies. `reopen`
// opens the source again, for one that opens its arrays early. `say` gets lines of progress. REQUIRES that no reader of
// the source is open. Throws Error only out of `reopen`. [control]
NormalizedCopies use_normalized_copies(std::shared_ptr<const Source> source, const Normalizer& normalizer,
                                       const std::function<std::shared_ptr<const Source>()>& reopen,
                                       const std::function<void(const std::string& line)>& say);

}  // namespace headroom
