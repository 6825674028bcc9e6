// Copies of a source's files with fields standardised already (`data.normalized_cache`). They are found or made at the
// start, then read instead of the originals.
//
// The host serves a source's arrays, so it can read a dataset from another file without the source's help. Which
// dataset holds a field unchanged only the source knows; it says so by hr_datasource.origin. The copy is one of
// datasets, as large as the original. A copy of samples would be larger by as much as windows overlap. All other
// datasets are read from the original.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

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
