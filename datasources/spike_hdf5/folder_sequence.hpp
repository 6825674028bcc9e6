// A sequence in files: a PNG for each blurred and each sharp frame, and raw spikes for each.
#pragma once

#include <vector>

#include "frame_files.hpp"
#include "sequence.hpp"
#include "spikes.hpp"

namespace spike_hdf5 {

class FolderSequence : public Sequence {
 public:
  // At least one frame.
  FolderSequence(const sdk::Host& host, FrameFiles files, const Wanted& wanted);

  std::vector<std::filesystem::path> files() const override;
  void read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) override;
  std::span<const uint8_t> read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                       Workspace& space) override;

 private:
  void describe_images(const Facts& like);
  void describe_spikes(uint64_t wanted_bins);
  const std::vector<std::filesystem::path>& images() const { return files_.blur.empty() ? files_.sharp : files_.blur; }

  sdk::Host host_;
  SpikeCamera camera_;
  FrameFiles files_;
};

}  // namespace spike_hdf5
