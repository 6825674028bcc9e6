// The statistics of a normaliser, measured once for the same data and kept in the user's cache folder for later runs.
#pragma once

#include <string>
#include <vector>

#include "data/normalizer.hpp"

namespace headroom {

struct StatisticsRequest {
  const Source& source;
  const Split& train;
  std::string mode;  // data.normalize
  int64_t max_samples = 0;
  bool skip_bad_samples = false;
  std::string content_id;  // content_id(source)
  std::string reads_as;    // what else decides the values of a sample: the plugin's file and its options
};

struct FoundStatistics {
  Normalizer normalizer;
  bool kept = false;               // an earlier run measured them
  std::vector<std::string> lines;  // for the log; none where nothing is standardised
};

// Returns kept statistics where the files on disk are the same (device, inode, size, modification time) and so are
// content id, split and request; else measures. A file of statistics that is damaged is measured again; one that cannot
// be written is left out without an error. Error(data) as Normalizer::measure(). [control]
FoundStatistics find_statistics(const StatisticsRequest& request);

// Identifies a source's data wherever it lies: a hash of its fields and of its files' relative names, sizes, and first
// and last 64 KiB. Files behind the external links and virtual datasets that it opened are among them. Against
// accidents, not against attackers. Error(data) where a file cannot be read. [any]
std::string content_id(const Source& source);
}  // namespace headroom
