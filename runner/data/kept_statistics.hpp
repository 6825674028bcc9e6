// A normaliser measured once for the same data, and kept in the user's cache for the next start.
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
  std::string content_id;  // of the source's files
  std::string reads_as;    // whatever else decides what a sample holds: the plugin's file and its options
};

struct FoundStatistics {
  Normalizer normalizer;
  bool kept = false;               // from an earlier start
  std::vector<std::string> lines;  // for the log; none where nothing is standardised
};

// Kept ones hold for the same files on disk (device, inode, size, modification time) with the same content id, split
// and request. What cannot be read, or is not what it should be, is measured anew; what cannot be kept is not.
// Error(data), as Normalizer::measure. [control]
FoundStatistics find_statistics(const StatisticsRequest& request);

// Hash over the sorted relative names, sizes, fields, and first and last 64 KiB of a source's files: what the data is,
// wherever it lies.
std::string content_id(const Source& source);
}  // namespace headroom
