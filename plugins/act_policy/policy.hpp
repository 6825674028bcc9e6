// The whole policy under the reference's names: camera backbone, CVAE encoder, transformer, heads.
#pragma once

#include <memory>
#include <torch/torch.h>

#include "architecture.hpp"
#include "backbone.hpp"
#include "transformer.hpp"

namespace headroom {

struct Observation {
  at::Tensor images;  // uint8 [batch, camera, 3, height, width]
  at::Tensor qpos;    // [batch, state_dim]
};

// What the CVAE encoder sees of the future; empty when the policy acts.
struct Demonstration {
  at::Tensor actions;  // [batch, chunk_size, action_dim]
  at::Tensor valid;    // bool [batch, chunk_size]
  at::Tensor eps;      // [batch, latent_dim], standard normal
};

struct Prediction {
  at::Tensor actions;       // [batch, chunk_size, action_dim]
  at::Tensor is_pad;        // [batch, chunk_size, 1], logits that no loss knows; only where asked for
  at::Tensor mean, logvar;  // [batch, latent_dim] of the latent variable; undefined without a demonstration
};

class Policy : public torch::nn::Module {
 public:
  explicit Policy(const Architecture& architecture);

  Prediction forward(const sdk::Call& call, const Observation& observed, const Demonstration& shown);

 private:
  std::pair<at::Tensor, at::Tensor> latent(const Dropout& dropout, const at::Tensor& qpos, const Demonstration& shown);
  at::Tensor normalised(const at::Tensor& images) const;
  at::Tensor image_tokens(const at::Tensor& images);

  Architecture architecture_;
  at::Tensor mean_, std_;            // of colours; made once, because a trace does not see how at::tensor() fills one
  at::Tensor pos_table_, position_;  // position_ [image tokens, hidden_dim]
  std::shared_ptr<Transformer> transformer_;
  std::shared_ptr<Encoder> encoder_;
  std::shared_ptr<Dense> action_head_, is_pad_head_, input_proj_robot_state_, encoder_action_proj_, encoder_joint_proj_,
      latent_proj_, latent_out_proj_;
  at::Tensor query_embed_, cls_embed_, additional_pos_embed_;  // [rows, hidden_dim]
  at::Tensor input_proj_weight_, input_proj_bias_;
  std::shared_ptr<Backbone> backbone_;
};

}  // namespace headroom
