#include "architecture.hpp"

#include <array>

#include "headroom/sdk/shape_text.hpp"

namespace headroom {
namespace {

using namespace sdk;

const Field& field_of(const Fields& fields, const char* name, std::size_t axes, bool floating, const char* meaning) {
  const Field& field = fields.at(name);
  const bool right_type = floating ? field.dtype.code == kDLFloat : same_type(field.dtype, u8);
  if (field.shape.size() != axes || !right_type) {
    invalid("the field '" + field.name + "' must be " + (floating ? "a floating-point" : "a uint8") + " array of [" +
            meaning + "], which the data source does not give; its shape is " + shape_text(field.shape));
  }
  return field;
}

std::vector<Joint> read_joints(const Field& action) {
  std::vector<Joint> joints;
  for (int64_t i = 0; i < action.shape[1]; ++i) {
    Joint joint{std::to_string(i), action.normalize ? "" : action.unit, 1.0};  // what the host standardises has none
    if (action.channel_axis == 1 && static_cast<int64_t>(action.channels.size()) == action.shape[1]) {
      const Channel& channel = action.channels[static_cast<std::size_t>(i)];
      if (!channel.name.empty()) joint.name = channel.name;
      if (!channel.unit.empty()) joint.unit = channel.unit;
      joint.std = channel.std;
    }
    joints.push_back(joint);
  }
  return joints;
}

void read_fields(const Fields& fields, Architecture& to) {
  const Field& image = field_of(fields, "image", 4, false, "camera, 3, height, width");
  const Field& qpos = field_of(fields, "qpos", 1, true, "joint");
  const Field& action = field_of(fields, "action", 2, true, "time, joint");
  if (image.shape[1] != 3) {
    invalid("the field 'image' has " + std::to_string(image.shape[1]) + " channels a camera; 3 are needed");
  }
  to.cameras = image.shape[0];
  to.height = image.shape[2];
  to.width = image.shape[3];
  to.state_dim = qpos.shape[0];
  to.joints = read_joints(action);
  if (action.shape[0] < to.chunk_size) {
    invalid("model.options.chunk_size is " + std::to_string(to.chunk_size) + ", but the longest episode has " +
            std::to_string(action.shape[0]) + " steps: set it to " + std::to_string(action.shape[0]) + " or less");
  }
  const Field* is_pad = fields.find("is_pad");
  if (is_pad != nullptr && (is_pad->shape.size() != 1 || is_pad->shape[0] != action.shape[0])) {
    invalid("the field 'is_pad' must be [time], " + std::to_string(action.shape[0]) + " steps as 'action', not " +
            shape_text(is_pad->shape));
  }
  const Field* eps = fields.find("eps");
  if (eps != nullptr && eps->shape != std::vector<int64_t>{Architecture::latent_dim}) {
    invalid("the field 'eps' must be " + shape_text(std::array{Architecture::latent_dim}) +
            ", the draw of the latent variable, not " + shape_text(eps->shape));
  }
}

}  // namespace

OptionList Architecture::options() {
  return {
      opt_i64("chunk_size").def(100).min(1).max(10000).help("actions predicted at once (--chunk_size; the guide: 20)"),
      opt_f64("kl_weight").def(10.0).min(0.0).help("factor of the KL term of the loss"),
      opt_i64("hidden_dim").def(512).min(4).max(65536).help("width of the transformer; a multiple of nheads and of 4"),
      opt_i64("dim_feedforward").def(3200).min(1).max(1 << 20).help("width inside its feed-forward blocks"),
      opt_i64("nheads").def(8).min(1).max(1024).help("attention heads"),
      opt_i64("enc_layers").def(4).min(1).max(256).help("layers of the CVAE encoder, and of the transformer's encoder"),
      opt_i64("dec_layers").def(7).min(1).max(256).help("decoder layers kept in checkpoints"),
      opt_string("decoder_output")
          .def("first")
          .choices({"first", "last"})
          .help("first: predict from the first decoder layer, as the original does, and neither run nor train the "
                "others; last: run and train them all"),
      opt_f64("dropout").def(0.1).min(0.0).max(0.999).help("probability, in training"),
      opt_bool("pre_norm").def(false).help("normalise before attention and feed-forward instead of after"),
      opt_f64("lr_backbone").def(1e-5).min(0.0).help("learning rate of the camera backbone; 0: it is not trained"),
      opt_i64s("backbone_widths")
          .def("[64, 128, 256, 512]")
          .min(1)
          .max(65536)
          .help("channels of the backbone's four stages; the default is ResNet-18")};
}

Architecture Architecture::read(const Options& options, const Fields& fields) {
  Architecture policy;
  policy.chunk_size = options.i64("chunk_size");
  policy.hidden_dim = options.i64("hidden_dim");
  policy.dim_feedforward = options.i64("dim_feedforward");
  policy.nheads = options.i64("nheads");
  policy.enc_layers = options.i64("enc_layers");
  policy.dec_layers = options.i64("dec_layers");
  policy.last_decoder_layer = options.string("decoder_output") == "last";
  policy.pre_norm = options.boolean("pre_norm");
  policy.dropout = options.f64("dropout");
  policy.kl_weight = options.f64("kl_weight");
  policy.lr_backbone = options.f64("lr_backbone");
  policy.backbone_widths = options.list_i64("backbone_widths");
  if (policy.hidden_dim % policy.nheads != 0 || policy.hidden_dim % 4 != 0) {
    invalid("model.options.hidden_dim is " + std::to_string(policy.hidden_dim) +
            ": it must be a multiple of 4 and of nheads = " + std::to_string(policy.nheads));
  }
  if (policy.backbone_widths.size() != 4) {
    invalid("model.options.backbone_widths has " + std::to_string(policy.backbone_widths.size()) +
            " numbers: the backbone has four stages");
  }
  read_fields(fields, policy);
  return policy;
}

}  // namespace headroom
