// What the mask of a split takes: a dataset that names groups, or has a 0 or 1 for each row or episode.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stretches.hpp"

namespace hdf5_source {

class Mask {
 public:
  virtual ~Mask() = default;
  // The rows of `stretch` that the mask takes, in order. Asked for the stretches of one sequence after the other.
  virtual std::vector<RowRange> take(const Sequence& sequence, const Stretch& stretch) = 0;
  // Names that no group asked for has.
  virtual std::vector<std::string> left() { return {}; }
};

// Throws HR_INVALID_ARGUMENT or HR_DATA_CORRUPT, as its members do, for a dataset that is no mask. `split` and
// `stretches`, in the order of the sequences, outlive it.
std::unique_ptr<Mask> open_mask(const sdk::Host& host, const SplitSettings& split,
                                const std::vector<Sequence>& sequences, const std::vector<Stretch>& stretches);

}  // namespace hdf5_source
