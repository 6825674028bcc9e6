// A sequence in folders: a PNG file for each blurred and each sharp frame, and a file of raw spikes, by the same names.
#pragma once

#include <vector>

#include "sequence.hpp"
#include "spikes.hpp"

namespace spike_hdf5 {

struct Folders {
  std::filesystem::path blur, sharp, spikes;
};

class FolderSequence : public Sequence {
 public:
  FolderSequence(const sdk::Host& host, const Folders& folders, const Wanted& wanted);

  std::vector<std::filesystem::path> files() const override;
  void read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) override;
  std::span<const uint8_t> read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                       Workspace& space) override;

 private:
  void describe_spikes(uint64_t wanted_bins);
  std::vector<std::filesystem::path> files_like_blur(const std::filesystem::path& folder, const char* extension) const;
  // The part of a stream that counts: where it begins, its bytes.
  std::pair<uint64_t, uint64_t> middle(uint64_t frames) const;

  sdk::Host host_;
  SpikeCamera camera_;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> blur_, sharp_, spikes_;
};

}  // namespace spike_hdf5
