// A sequence in one HDF5 file: `blur` and `sharp` [T, H, W, 3], float32 in [0, 1] or uint8; `voxel` [T, K, h, w],
// float32 or uint8 counts, where h and w divide H and W.
#pragma once

#include <optional>

#include "sequence.hpp"

namespace spike_hdf5 {

class Hdf5Sequence : public Sequence {
 public:
  Hdf5Sequence(const sdk::Host& host, const std::filesystem::path& file, const Wanted& wanted);

  std::vector<std::filesystem::path> files() const override { return {file_}; }
  void read_image(Image image, uint64_t frame, const Box& box, Workspace& space, std::byte* planes) override;
  void read_voxel(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box, const VoxelTransform& transform,
                  Workspace& space, float* to) override;
  std::span<const uint8_t> read_counts(uint64_t frame, uint64_t first_bin, uint64_t bins, const Box& box,
                                       Workspace& space) override;

 private:
  sdk::Array open(const sdk::Host& host, const std::string& dataset) const;
  void require_images(const sdk::Array& array, const char* name) const;
  void describe_images(const sdk::Array& images);
  void require_same_frames() const;
  void describe_voxel(const Wanted& wanted);
  template <class T>
  void read_planes(Image image, uint64_t frame, const Box& box, Workspace& space, T* planes);
  void require_values(Image image, uint64_t frame, const Box& band, std::span<const float> values) const;

  std::filesystem::path file_;
  std::optional<sdk::Array> blur_, sharp_, voxel_;
};

}  // namespace spike_hdf5
