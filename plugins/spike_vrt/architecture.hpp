// plugins/spike_vrt/: VRT for deblurring, with or without the spikes of a second camera; README.md is the guide. Here,
// torch-free: the numbers of one network, read from options and fields and checked before a tensor is made.
#pragma once

#include <cstdint>
#include <string>

#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/options.hpp"
#include "tiles.hpp"
#include "vrt_shape.hpp"

namespace headroom {

enum class Fusion {
  none,            // colours alone
  concat,          // voxel bins are further channels of the input
  adapter,         // a convolution of the bins, zero at first, is added to the first features
  cross_attention  // a branch of its own, which the first four stages attend to
};

struct Architecture {
  VrtShape network;
  Fusion fusion = Fusion::cross_attention;
  int64_t bins = 0;  // of the voxel; 0 where none is used
  double charbonnier_eps = 1e-9, flow_lr_scale = 0.125;
  int64_t fix_iters = 20000;  // steps before SpyNet and the alignment train
  Tiles tiles;

  static sdk::OptionList options();
  // Throws sdk::Error(HR_INVALID_ARGUMENT): lists that do not meet, fields that do not suit.
  static Architecture read(const sdk::Options& options, const sdk::Fields& fields);

  // Throws sdk::Error(HR_INVALID_ARGUMENT) where the network cannot take a clip of that size.
  void require_size(int64_t frames, int64_t rows, int64_t columns) const;
};

}  // namespace headroom
