// Copies of a source's files in which fields are standardised already: found or made at the start, then read in the
// originals' place.
//
// The host serves arrays, so it can answer a source's reads of one dataset with another; but only the source knows
// which member of which dataset is a field, unchanged. It tells (hr_datasource.origin), and the copy is of that
// dataset: as large as the original however often windows overlap, where a copy of samples would be many times that.
// Whatever else the source reads comes from the original.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

struct NormalizedCopies {
  std::shared_ptr<const Source> source;  // to read from: the one given, or another of its kind
  std::vector<std::string> fields;       // that it delivers standardised; empty: none
  std::vector<std::string> lines;        // for the log
};

// Every file of a field has its copy, or none is used: an error on the way is a line, and the originals are read. A
// copy lies beside its file as `<file>.normalized.h5`; in the user's cache where that folder cannot be written, or
// where a copy of the same file with other statistics is there already, which another run may be reading.
//
// What the source says is not taken on trust: some samples of every split must be the same bytes as before. `reopen`
// opens it once more, for a source that holds its arrays open from the start. `say`: progress. [control, no reads in
// flight, no reader open]
NormalizedCopies use_normalized_copies(std::shared_ptr<const Source> source, const Normalizer& normalizer,
                                       const std::function<std::shared_ptr<const Source>()>& reopen,
                                       const std::function<void(const std::string& line)>& say);

}  // namespace headroom
