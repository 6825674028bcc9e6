// One sequence as `headroom predict` reads it: whole frames, nothing drawn, the end mirrored where a clip reaches
// beyond it. headroom.predict/1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clip.hpp"
#include "reader.hpp"

namespace spike_hdf5 {

class RecordedSequence {
 public:
  RecordedSequence(const sdk::Host& host, std::unique_ptr<Sequence> sequence, const Wanted& opened,
                   const Selection& selection);

  uint64_t steps() const { return sequence_->facts().frames; }
  std::vector<int64_t> shape(uint32_t field) const;  // zeros: the sequence does not have it
  void read(const sdk::ReadRequest& request);

 private:
  void read_frame(const sdk::ReadRequest& request, uint64_t sample, uint64_t place, uint64_t frame);

  std::unique_ptr<Sequence> sequence_;
  uint64_t clip_length_;
  FieldNumbers numbers_;
  bool sharp_;
  ClipReader clips_;
};

}  // namespace spike_hdf5
