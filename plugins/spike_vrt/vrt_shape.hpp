// The numbers of one VRT; torch-free.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace headroom {

using Extent = std::array<int64_t, 3>;  // frames, rows, columns

// Seven stages at scales 1, 1/2, 1/4, 1/8, 1/4, 1/2, 1, then groups at full scale. The defaults are the deblurring
// network.
struct VrtShape {
  static constexpr std::size_t kStages = 7;
  static constexpr std::array<std::size_t, kStages> kLevel = {0, 1, 2, 3, 2, 1, 0};  // scale 1 / 2^level

  int64_t in_channels = 3;  // the first three are colours
  Extent window{6, 8, 8};
  std::vector<int64_t> depths, embed_dims, num_heads;  // of the stages, then of the groups
  std::vector<int64_t> indep_reconsts;                 // indices into depths: groups that look at single frames
  double mul_attn_ratio = 0.75;                        // of a stage's blocks: mutual attention
  double mlp_ratio = 2.0;
  int64_t pa_frames = 2;  // neighbours warped to a frame, both sides together
  int64_t deformable_groups = 16;
  double drop_path_rate = 0.2;  // of the last block; 0 of the first

  int64_t neighbours() const { return pa_frames / 2; }
  int64_t mutual_depth(std::size_t stage) const {
    return static_cast<int64_t>(static_cast<double>(depths[stage]) * mul_attn_ratio);
  }
  int64_t hidden(std::size_t i) const { return static_cast<int64_t>(static_cast<double>(embed_dims[i]) * mlp_ratio); }
  bool independent(std::size_t i) const {
    return std::find(indep_reconsts.begin(), indep_reconsts.end(), static_cast<int64_t>(i)) != indep_reconsts.end();
  }
  // The rates of stage or group i, block by block: an even slope over all blocks.
  std::vector<double> drop_path_of(std::size_t i) const;
};

}  // namespace headroom
