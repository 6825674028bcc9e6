// A sequence whose whole frames stay in the host's cache (headroom.cache/1): clips share them, and every crop of them
// is a copy. A frame for which there is no room is read from the sequence, cropped.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/sdk/blocks.hpp"
#include "sequence.hpp"

namespace spike_hdf5 {

class KeptFrames final : public Sequence {
 public:
  // `name`: of the sequence, among all of the process.
  KeptFrames(const sdk::Host& host, std::string name, std::unique_ptr<Sequence> sequence);

  std::vector<std::filesystem::path> files() const override { return sequence_->files(); }
  void read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) override;
  void read_voxel(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box, const VoxelTransform& transform,
                  Workspace& space, float* to) override;
  std::span<const uint8_t> read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                       Workspace& space) override;

 private:
  // A frame's image, or all its bins as they are stored; nullopt: no room.
  std::optional<sdk::CacheBlock> image(Image image, uint64_t frame, Workspace& space);
  std::optional<sdk::CacheBlock> voxel(uint64_t frame, Workspace& space);
  std::optional<sdk::CacheBlock> acquire(const char* what, uint64_t frame, uint64_t bytes);

  sdk::Host host_;
  std::string name_;
  std::unique_ptr<Sequence> sequence_;
};

}  // namespace spike_hdf5
