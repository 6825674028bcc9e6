// plugins/act_policy/: ACT, a CVAE transformer that predicts the next chunk of actions from camera images and joint
// positions; README.md is the guide. Here, torch-free: the numbers of one policy, read from options and fields and
// checked before a tensor is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/options.hpp"

namespace headroom {

// What each action is in the world: value = (measured - mean) / std.
struct Joint {
  std::string name, unit;
  double std = 1.0;
};

struct Architecture {
  static constexpr int64_t latent_dim = 32;

  int64_t cameras = 0, height = 0, width = 0;
  int64_t state_dim = 0;      // of qpos
  std::vector<Joint> joints;  // of the actions
  int64_t chunk_size = 0;     // actions predicted at once
  int64_t hidden_dim = 0, dim_feedforward = 0, nheads = 0;
  int64_t enc_layers = 0;  // of the CVAE encoder, and again of the transformer's encoder
  int64_t dec_layers = 0;
  bool last_decoder_layer = false;  // predict from the last decoder layer instead of the first
  bool pre_norm = false;
  double dropout = 0.0, kl_weight = 0.0, lr_backbone = 0.0;
  std::vector<int64_t> backbone_widths;  // channels of layer1 to layer4

  int64_t action_dim() const { return static_cast<int64_t>(joints.size()); }
  int64_t live_decoder_layers() const { return last_decoder_layer ? dec_layers : 1; }
  int64_t map_height() const { return after_backbone(height); }
  int64_t map_width() const { return after_backbone(width); }

  static sdk::OptionList options();
  // Throws sdk::Error(HR_INVALID_ARGUMENT): widths that do not meet, chunks longer than the episodes, fields that do
  // not suit.
  static Architecture read(const sdk::Options& options, const sdk::Fields& fields);

 private:
  // Five halvings: conv1, maxpool, layer2, layer3, layer4.
  static int64_t after_backbone(int64_t pixels) {
    for (int halving = 0; halving < 5; ++halving) pixels = (pixels - 1) / 2 + 1;
    return pixels;
  }
};

}  // namespace headroom
