#include "policy.hpp"

#include "position.hpp"

namespace headroom {
namespace {

using namespace sdk::literals;

// A module that only gives its tensors their names.
struct Names : torch::nn::Module {
  at::Tensor add(const std::string& name, at::Tensor tensor) { return register_parameter(name, std::move(tensor)); }
};

at::Tensor embedding(torch::nn::Module& owner, const std::string& name, int64_t rows, int64_t width) {
  return owner.register_module(name, std::make_shared<Names>())->add("weight", at::randn({rows, width}));
}

// Of ImageNet, per colour.
at::Tensor colours(double red, double green, double blue) {
  return at::tensor({red, green, blue}, at::kDouble).view({3, 1, 1});
}

}  // namespace

Policy::Policy(const Architecture& architecture)
    : architecture_(architecture), mean_(colours(0.485, 0.456, 0.406)), std_(colours(0.229, 0.224, 0.225)) {
  const Architecture& a = architecture_;
  const LayerShape shape{a.hidden_dim, a.nheads, a.dim_feedforward, a.pre_norm, Init::xavier};
  const auto dense = [&](const char* name, int64_t in, int64_t out) {
    return register_module(name, std::make_shared<Dense>(in, out));
  };
  pos_table_ = register_buffer("pos_table", sine_table(a.chunk_size + 2, a.hidden_dim));
  transformer_ = register_module("transformer", std::make_shared<Transformer>(shape, a.enc_layers, a.dec_layers));
  LayerShape of_cvae = shape;
  of_cvae.init = Init::uniform;
  encoder_ = register_module("encoder", std::make_shared<Encoder>(of_cvae, a.enc_layers));
  encoder_->copy_first_layer(/*biases_alone=*/false);
  action_head_ = dense("action_head", a.hidden_dim, a.action_dim());
  is_pad_head_ = dense("is_pad_head", a.hidden_dim, 1);
  query_embed_ = embedding(*this, "query_embed", a.chunk_size, a.hidden_dim);

  const auto input_proj = register_module("input_proj", std::make_shared<Names>());
  const Dense projection(a.backbone_widths.back(), a.hidden_dim);
  input_proj_weight_ = input_proj->add("weight", projection.weight.detach().view({a.hidden_dim, -1, 1, 1}).clone());
  input_proj_bias_ = input_proj->add("bias", projection.bias.detach().clone());

  const auto backbones = register_module("backbones", std::make_shared<Names>());
  const auto camera = backbones->register_module("0", std::make_shared<Names>());
  backbone_ = camera->register_module("0", std::make_shared<Names>())
                  ->register_module("body", std::make_shared<Backbone>(a.backbone_widths));

  input_proj_robot_state_ = dense("input_proj_robot_state", a.state_dim, a.hidden_dim);
  cls_embed_ = embedding(*this, "cls_embed", 1, a.hidden_dim);
  encoder_action_proj_ = dense("encoder_action_proj", a.action_dim(), a.hidden_dim);
  encoder_joint_proj_ = dense("encoder_joint_proj", a.state_dim, a.hidden_dim);
  latent_proj_ = dense("latent_proj", a.hidden_dim, 2 * a.latent_dim);
  latent_out_proj_ = dense("latent_out_proj", a.latent_dim, a.hidden_dim);
  additional_pos_embed_ = embedding(*this, "additional_pos_embed", 2, a.hidden_dim);

  // Cameras lie side by side and share one map: a token is (row, camera, column).
  const int64_t rows = a.map_height(), columns = a.map_width();
  const at::Tensor map = sine_map(rows, columns, a.hidden_dim / 2).permute({1, 2, 0}).unsqueeze(1);
  position_ = register_buffer(
      "position",
      map.expand({rows, a.cameras, columns, a.hidden_dim}).reshape({rows * a.cameras * columns, a.hidden_dim}));
}

Prediction Policy::forward(const sdk::Call& call, const Observation& observed, const Demonstration& shown) {
  const Dropout dropout(call, architecture_.dropout, "act_policy"_site);
  Prediction result;
  at::Tensor z;
  if (shown.actions.defined()) {
    std::tie(result.mean, result.logvar) = latent(dropout.at("cvae"_site), observed.qpos, shown);
    z = result.mean + (result.logvar / 2).exp() * shown.eps;
  } else {
    z = at::zeros({observed.qpos.size(0), architecture_.latent_dim}, observed.qpos.options());
  }
  const at::Tensor tokens =
      at::cat({latent_out_proj_->forward(z).unsqueeze(1), input_proj_robot_state_->forward(observed.qpos).unsqueeze(1),
               image_tokens(observed.images)},
              1);
  const at::Tensor position = at::cat({additional_pos_embed_, position_});
  const at::Tensor decoded = transformer_->forward(dropout.at("transformer"_site), tokens, position, query_embed_,
                                                   architecture_.live_decoder_layers());
  result.actions = action_head_->forward(decoded);
  if (call.wants_outputs()) result.is_pad = is_pad_head_->forward(decoded.detach());
  return result;
}

// Mean and logarithm of the variance.
std::pair<at::Tensor, at::Tensor> Policy::latent(const Dropout& dropout, const at::Tensor& qpos,
                                                 const Demonstration& shown) {
  const int64_t batch = qpos.size(0);
  const at::Tensor cls = cls_embed_.expand({batch, 1, architecture_.hidden_dim});
  const at::Tensor tokens =
      at::cat({cls, encoder_joint_proj_->forward(qpos).unsqueeze(1), encoder_action_proj_->forward(shown.actions)}, 1);
  const at::Tensor attended = at::cat({at::ones({batch, 2}, shown.valid.options()), shown.valid}, 1);
  const at::Tensor summary = encoder_->first_token(dropout, tokens, pos_table_, attended);
  const std::vector<at::Tensor> halves =
      latent_proj_->forward(summary).to(qpos.scalar_type()).split(architecture_.latent_dim, 1);
  return {halves[0], halves[1]};
}

// [0, 255] -> ImageNet's mean 0 and standard deviation 1.
at::Tensor Policy::normalised(const at::Tensor& images) const {
  const auto options = images.options().dtype(input_proj_weight_.scalar_type());
  return images.to(options).div_(255.0).sub_(mean_.to(options)).div_(std_.to(options));
}

// [batch, rows * cameras * columns, hidden_dim]
at::Tensor Policy::image_tokens(const at::Tensor& images) {
  const int64_t batch = images.size(0);
  at::Tensor flat = normalised(images.flatten(0, 1));
  if (flat.is_cpu()) flat = flat.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor features = backbone_->forward(flat);
  const at::Tensor by_place = features.permute({0, 2, 3, 1})
                                  .reshape({batch, architecture_.cameras, features.size(2), features.size(3), -1})
                                  .permute({0, 2, 1, 3, 4})
                                  .reshape({batch, -1, features.size(1)});
  return at::linear(by_place, input_proj_weight_.flatten(1), input_proj_bias_);
}

}  // namespace headroom
