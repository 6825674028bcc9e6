// Copies of a source's files in which fields are standardised already: found or made at the start, then read in the
// originals' place.
//
// The host serves arrays, so it can answer a source's reads of one dataset with another; but only the source knows
// which member of which dataset is a field, unchanged. It tells (hr_datasource.origin), and the copy is of that
// dataset: as large as the original however often windows overlap, where a copy of samples would be many times that.
// Whatever else the source reads comes from the original.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

struct NormalizedCopies {
  std::vector<std::string> fields;  // that come standardised from now on; empty: none do
  std::vector<std::string> lines;   // for the log
};

// Every file of a field has its copy, or none is used: an error on the way is a line, and the originals are read. A
// copy lies beside its file as `<file>.normalized.h5`; in the user's cache where that folder cannot be written, or
// where a copy of the same file with other statistics is there already, which another run may be reading. The source
// must be opened again afterwards: arrays that are open stay what they are. `say`: progress. [control, no reads in
// flight]
NormalizedCopies use_normalized_copies(const Source& source, const Normalizer& normalizer,
                                       const std::function<void(const std::string& line)>& say);

// The originals again. [control]
void forget_normalized_copies();

}  // namespace headroom
