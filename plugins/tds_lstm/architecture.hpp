// plugins/tds_lstm/: EMG to hand joint angles with a time-depth-separable encoder and a recurrent decoder; README.md is
// the guide. Here, torch-free: the numbers of one network, read from options and fields, completed and checked before a
// tensor is made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/sdk/fields.hpp"
#include "headroom/sdk/inputs.hpp"
#include "headroom/sdk/options.hpp"

namespace headroom {

struct ConvBlockShape {
  int64_t in_channels, out_channels, kernel_size, stride;
  bool norm;
};

struct StageShape {
  int64_t in_channels, in_conv_kernel_width, in_conv_stride;  // kernel width 0: no convolution in front
  int64_t num_blocks, channels, feature_width, kernel_width;
  int64_t out_channels;  // 0: no linear layer at the end

  int64_t width() const { return channels * feature_width; }
  int64_t features() const { return out_channels > 0 ? out_channels : width(); }
};

struct EncoderShape {
  std::vector<ConvBlockShape> conv_blocks;
  std::vector<StageShape> stages;
  int64_t features = 0;      // of the last block
  int64_t left_context = 0;  // samples a feature sees before its own
};

struct DecoderShape {
  bool lstm = true;
  int64_t in = 0, out = 0;
  int64_t hidden_size = 0, num_layers = 0;  // of the LSTM
  std::vector<int64_t> layer_sizes;         // of the MLP
  bool layer_norm = false;
  double output_scale = 1.0;
};

enum class PoseModule { state, vemg2pose, pose };

// What training minimises: the weighted sum of both terms.
struct LossWeights {
  double mse = 0.0, mae = 0.0;
};

struct Architecture {
  int64_t window = 0, channels = 0, joints = 0;
  double sample_rate_hz = 0.0;
  std::string unit;  // of the joint angles
  EncoderShape encoder;
  DecoderShape decoder;  // unused by PoseModule::pose
  PoseModule pose_module = PoseModule::state;
  bool state_condition = true, predict_vel = false, provide_initial_pos = true;
  int64_t rollout_steps = 0;   // of one window
  int64_t position_steps = 0;  // of vemg2pose: steps that take a position, before velocities take over
  LossWeights loss;

  int64_t outputs() const { return window - encoder.left_context; }  // predicted samples of one window

  static sdk::OptionList options();
  // Fields for a network of a few roll-out steps.
  static std::vector<sdk::Input> inputs(const sdk::Options& options);
  // Throws sdk::Error(HR_INVALID_ARGUMENT): widths that do not meet, a window shorter than the context, fields that do
  // not suit.
  static Architecture read(const sdk::Options& options, const sdk::Fields& fields);
};

// Roll-out steps in `samples`, half to even: 500 samples of 2000 Hz at 50 steps a second are 12, not 13.
int64_t steps_in(int64_t samples, double sample_rate_hz, double rollout_freq);

}  // namespace headroom
