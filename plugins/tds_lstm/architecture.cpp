#include "architecture.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace headroom {
namespace {

using namespace sdk;

constexpr int64_t kWidest = 65536, kLongest = 16384;

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  invalid(text(parts...));
}

OptionList conv_block_keys() {
  return {opt_i64("in_channels").def(0).min(0).max(kWidest).help("input channels; 0: those of the block before"),
          opt_i64("out_channels").required().min(1).max(kWidest).help("output channels"),
          opt_i64("kernel_size").required().min(1).max(kLongest).help("kernel length, in samples of its input"),
          opt_i64("stride").def(1).min(1).max(kLongest).help("stride, in samples of its input"),
          opt_string("norm_type").def("layer").choices({"layer", "none"}).help("what follows the ReLU")};
}

OptionList stage_keys() {
  return {
      opt_i64("in_channels").def(0).min(0).max(kWidest).help("input channels; 0: those of the block before"),
      opt_i64("in_conv_kernel_width").def(5).min(0).max(kLongest).help("kernel of the convolution in front; 0: none"),
      opt_i64("in_conv_stride").def(2).min(1).max(kLongest).help("stride of the convolution in front"),
      opt_i64("num_blocks").def(2).min(0).max(256).help("pairs of a TDS convolution and a fully connected block"),
      opt_i64("channels").def(8).min(1).max(kWidest).help("channels of the TDS convolutions"),
      opt_i64("feature_width")
          .required()
          .min(1)
          .max(kWidest)
          .help("features a channel; the stage is channels x feature_width wide"),
      opt_i64("kernel_width").required().min(1).max(kLongest).help("kernel of the TDS convolutions; odd"),
      opt_i64("out_channels").def(0).min(0).max(kWidest).help("width of a linear layer at the end; 0: none")};
}

// Follows the chain of blocks: widths, stride and context so far. Both saturate far above any window that can be read.
struct Chain {
  int64_t width, stride = 1, left_context = 0;

  void convolve(int64_t kernel, int64_t by) {
    constexpr int64_t huge = int64_t{1} << 40;
    left_context = std::min(huge, left_context + (kernel - 1) * stride);
    stride = std::min(huge >> 16, stride * by);
  }

  int64_t enter(int64_t in_channels, const std::string& key) const {
    if (in_channels != 0 && in_channels != width) {
      refuse("model.options.", key, " is ", in_channels, ", but what comes before it has ", width,
             " channels: leave the key out or set it to ", width);
    }
    return width;
  }
};

EncoderShape read_encoder(const Options& options, int64_t channels) {
  EncoderShape encoder;
  Chain chain{channels};
  for (const Options& block : options.tables("conv_blocks")) {
    const std::string key = text("conv_blocks[", encoder.conv_blocks.size(), "].in_channels");
    encoder.conv_blocks.push_back({chain.enter(block.i64("in_channels"), key), block.i64("out_channels"),
                                   block.i64("kernel_size"), block.i64("stride"),
                                   block.string("norm_type") == "layer"});
    chain.convolve(encoder.conv_blocks.back().kernel_size, encoder.conv_blocks.back().stride);
    chain.width = encoder.conv_blocks.back().out_channels;
  }
  for (const Options& table : options.tables("tds_stages")) {
    const std::string key = text("tds_stages[", encoder.stages.size(), "]");
    StageShape stage{chain.enter(table.i64("in_channels"), key + ".in_channels"),
                     table.i64("in_conv_kernel_width"),
                     table.i64("in_conv_stride"),
                     table.i64("num_blocks"),
                     table.i64("channels"),
                     table.i64("feature_width"),
                     table.i64("kernel_width"),
                     table.i64("out_channels")};
    if (stage.kernel_width % 2 == 0) {
      refuse("model.options.", key, ".kernel_width is ", stage.kernel_width, ": TDS convolutions need an odd kernel");
    }
    if (stage.width() > kWidest) {
      refuse("model.options.", key, " is channels x feature_width = ", stage.width(), " wide; at most ", kWidest,
             " is allowed");
    }
    if (stage.in_conv_kernel_width > 0) {
      chain.convolve(stage.in_conv_kernel_width, stage.in_conv_stride);
    } else if (stage.width() != stage.in_channels) {
      refuse("model.options.", key,
             " has no convolution in front (in_conv_kernel_width = 0), so channels x feature_width must be its ",
             stage.in_channels, " input channels, not ", stage.width());
    }
    for (int64_t block = 0; block < stage.num_blocks; ++block) chain.convolve(stage.kernel_width, 1);
    chain.width = stage.features();
    encoder.stages.push_back(stage);
  }
  if (encoder.conv_blocks.empty() && encoder.stages.empty()) {
    invalid(
        "model.options.conv_blocks and model.options.tds_stages are both empty: the encoder needs at least one block");
  }
  encoder.features = chain.width;
  encoder.left_context = chain.left_context;
  return encoder;
}

DecoderShape read_decoder(const Options& options, int64_t in, int64_t out) {
  DecoderShape decoder;
  decoder.lstm = options.string("decoder") == "lstm";
  decoder.in = in;
  decoder.out = out;
  decoder.hidden_size = options.i64("decoder_hidden_size");
  decoder.num_layers = options.i64("decoder_num_layers");
  decoder.layer_sizes = options.list_i64("decoder_layer_sizes");
  decoder.layer_norm = options.boolean("decoder_layer_norm");
  decoder.output_scale = options.f64("output_scale");
  return decoder;
}

LossWeights read_loss(const Options& options) {
  const bool mae_only = options.string("loss") == "mae";
  if (!options.has("loss_weights")) return mae_only ? LossWeights{0.0, 1.0} : LossWeights{1.0, 0.5};
  if (mae_only) invalid("model.options.loss_weights belongs to loss = \"mse_mae\"; with loss = \"mae\" leave it out");
  const Options weights = options.table("loss_weights");
  const LossWeights loss{weights.f64("mse"), weights.f64("mae")};
  if (loss.mse + loss.mae <= 0.0) invalid("model.options.loss_weights are both 0: at least one term must count");
  return loss;
}

void read_fields(const Fields& fields, Architecture& to) {
  const Field &emg = fields.at("emg"), &angles = fields.at("joint_angles");
  const auto two_axes = [](const Field& field, const char* axes) {
    if (field.shape.size() == 2 && field.dtype.code == kDLFloat && field.shape[1] > 0) return;
    refuse("the field '", field.name, "' must be a floating-point array of [", axes,
           "], which the data source does not give");
  };
  two_axes(emg, "time, channel");
  two_axes(angles, "time, joint");
  to.window = emg.shape[0];
  to.channels = emg.shape[1];
  to.joints = angles.shape[1];
  to.sample_rate_hz = emg.sample_rate_hz;
  to.unit = angles.unit;
  if (angles.shape[0] != to.window) {
    refuse("the field 'joint_angles' has ", angles.shape[0], " samples a window and 'emg' has ", to.window,
           ": both must be equal");
  }
  const Field* valid = fields.find("valid");
  if (valid != nullptr && (valid->shape.size() != 1 || valid->shape[0] != to.window)) {
    refuse("the field 'valid' must be [time], ", to.window, " samples as 'emg'");
  }
  if (!std::isfinite(to.sample_rate_hz) || to.sample_rate_hz <= 0.0) {
    invalid("the field 'emg' has no sample rate (sample_rate_hz), which the roll-out needs");
  }
}

// The fewest predicted samples that make one roll-out step.
int64_t fewest_outputs(double sample_rate_hz, double rollout_freq) {
  auto samples = static_cast<int64_t>(std::max(1.0, std::floor(0.5 * sample_rate_hz / rollout_freq)));
  while (steps_in(samples, sample_rate_hz, rollout_freq) < 1) ++samples;
  return samples;
}

void check_window(const Architecture& model, double rollout_freq) {
  const bool rolls_out = model.pose_module != PoseModule::pose;
  const int64_t fewest = rolls_out ? fewest_outputs(model.sample_rate_hz, rollout_freq) : 1;
  const int64_t needed = model.encoder.left_context + fewest;
  if (model.window >= needed) return;
  const std::string step = rolls_out ? text(" (one roll-out step of ", rollout_freq, " Hz at a sample rate of ",
                                            model.sample_rate_hz, " Hz)")
                                     : "";
  refuse("a window of ", model.window, " samples is too short: this encoder takes ", model.encoder.left_context,
         " samples of left context and needs at least ", fewest, " more to predict", step,
         "; set data.options.window_size to ", needed, " or more, or choose smaller kernels and strides");
}

}  // namespace

int64_t steps_in(int64_t samples, double sample_rate_hz, double rollout_freq) {
  const double seconds = static_cast<double>(samples) / sample_rate_hz;
  return static_cast<int64_t>(std::nearbyint(seconds * rollout_freq));
}

OptionList Architecture::options() {
  return {opt_tables("conv_blocks", conv_block_keys())
              .def("[]")
              .help("convolutions in front of the stages: Conv1d, ReLU, LayerNorm"),
          opt_tables("tds_stages", stage_keys())
              .def("[{in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 2, channels = 8, feature_width = 4, "
                   "kernel_width = 21}, "
                   "{in_conv_kernel_width = 5, in_conv_stride = 2, num_blocks = 2, channels = 8, feature_width = 8, "
                   "kernel_width = 11}]")
              .help("time-depth-separable stages, first to last"),
          opt_string("pose_module")
              .def("state")
              .choices({"state", "vemg2pose", "pose"})
              .help("state: the state is rolled out (StatePoseModule); vemg2pose: positions, then velocities "
                    "(VEMG2PoseWithInitialState); "
                    "pose: the encoder alone (PoseModule)"),
          opt_string("decoder")
              .def("lstm")
              .choices({"lstm", "mlp"})
              .help("what a roll-out step runs (SequentialLSTM or MLP)"),
          opt_i64("decoder_hidden_size").def(128).min(1).max(kWidest).help("LSTM: units a layer"),
          opt_i64("decoder_num_layers").def(2).min(1).max(64).help("LSTM: layers"),
          opt_i64s("decoder_layer_sizes").def("[512, 512]").min(1).max(kWidest).help("MLP: hidden layers"),
          opt_bool("decoder_layer_norm").def(true).help("MLP: LayerNorm after each hidden layer"),
          opt_f64("output_scale").def(1.0).help("factor on the decoder's output (emg2pose: 0.01)"),
          opt_bool("state_condition").def(true).help("the decoder sees the state beside the features"),
          opt_bool("predict_vel").def(false).help("the output is added to the state instead of replacing it"),
          opt_bool("provide_initial_pos").def(true).help("start from the first target; otherwise from zeros"),
          opt_f64("rollout_freq").def(50.0).min(0.001).max(1e6).help("roll-out steps a second, Hz"),
          opt_i64("num_position_steps").def(500).min(0).help("vemg2pose: samples during which positions are predicted"),
          opt_string("loss").def("mse_mae").choices({"mse_mae", "mae"}).help("what training minimises"),
          opt_table("loss_weights", {opt_f64("mse").def(1.0).min(0.0).help("factor of the squared error"),
                                     opt_f64("mae").def(0.5).min(0.0).help("factor of the absolute error")})
              .help("of loss = \"mse_mae\": {mse = 1.0, mae = 0.5} unless set")};
}

std::vector<Input> Architecture::inputs(const Options& options) {
  constexpr int64_t channels = 8;
  constexpr double sample_rate_hz = 2000.0;
  const EncoderShape encoder = read_encoder(options, channels);
  const int64_t step = fewest_outputs(sample_rate_hz, options.f64("rollout_freq")),
                window = encoder.left_context + 4 * step;
  const int64_t joints = options.string("pose_module") == "pose" ? encoder.features : any_size;
  return {{.name = "emg", .shape = {window, channels}, .sample_rate_hz = sample_rate_hz},
          {.name = "joint_angles", .shape = {window, joints}, .unit = "rad"}};
}

Architecture Architecture::read(const Options& options, const Fields& fields) {
  Architecture model;
  read_fields(fields, model);
  model.encoder = read_encoder(options, model.channels);
  const std::string module = options.string("pose_module");
  model.pose_module = module == "pose"        ? PoseModule::pose
                      : module == "vemg2pose" ? PoseModule::vemg2pose
                                              : PoseModule::state;
  model.state_condition = options.boolean("state_condition");
  model.predict_vel = options.boolean("predict_vel");
  model.provide_initial_pos = options.boolean("provide_initial_pos");
  model.loss = read_loss(options);
  const double rollout_freq = options.f64("rollout_freq");
  check_window(model, rollout_freq);
  if (model.pose_module == PoseModule::pose) {
    if (model.encoder.features == model.joints) return model;
    refuse("pose_module = \"pose\" takes the encoder's output as angles: its last block must be ", model.joints,
           " wide, not ", model.encoder.features, " (set tds_stages[",
           std::max<std::size_t>(model.encoder.stages.size(), 1) - 1, "].out_channels = ", model.joints, ")");
  }
  model.rollout_steps = steps_in(model.outputs(), model.sample_rate_hz, rollout_freq);
  model.position_steps = steps_in(options.i64("num_position_steps"), model.sample_rate_hz, rollout_freq);
  model.decoder = read_decoder(options, model.encoder.features + (model.state_condition ? model.joints : 0),
                               model.joints * (model.pose_module == PoseModule::vemg2pose ? 2 : 1));
  return model;
}

}  // namespace headroom
