#include "rollout.hpp"

#include "headroom/sdk/autocast.hpp"
#include "interpolation.hpp"

namespace headroom {
namespace {

torch::nn::LeakyReLU leaky_relu() {
  return torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(leaky_slope));
}

class LstmDecoder : public Decoder {
 public:
  explicit LstmDecoder(const DecoderShape& shape) : shape_(shape) {
    lstm_ = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(shape.in, shape.hidden_size).num_layers(shape.num_layers)));
    const torch::nn::Linear out(shape.hidden_size, shape.out);
    mlp_out_ = register_module("mlp_out", torch::nn::Sequential(leaky_relu(), out));
    weights_ = {lstm_->parameters(), out->weight, out->bias, shape.output_scale};
  }

  Carry start(int64_t batch, const at::TensorOptions& like) const override {
    const at::Tensor zeros = torch::zeros({batch, shape_.hidden_size}, like);
    return Carry(shape_.num_layers, {zeros, zeros});
  }

  at::Tensor step(const at::Tensor& x, Carry& carry) override {
    at::Tensor top = x;
    for (std::size_t layer = 0; layer < carry.size(); ++layer) {
      const at::Tensor* w = &weights_.layers[4 * layer];
      auto& [hidden, cell] = carry[layer];
      std::tie(hidden, cell) = at::lstm_cell(top, {hidden, cell}, w[0], w[1], w[2], w[3]);
      top = hidden;
    }
    return out(top);
  }

  at::Tensor sequence(const at::Tensor& x) override { return out(whole(x)); }
  const LstmWeights* lstm() const override { return &weights_; }

 private:
  // On the CPU LibTorch trains no LSTM of whole sequences in float16, and in bfloat16 only where oneDNN works in it.
  at::Tensor whole(const at::Tensor& x) {
    sdk::Autocast autocast = sdk::Autocast::now(x.device());
    const bool exists = autocast.dtype == at::kBFloat16 && sdk::onednn_works_in(at::kBFloat16);
    if (x.is_cpu() && autocast.enabled && !exists) autocast = sdk::Autocast::off(x.device());
    const sdk::AutocastScope scope(autocast);
    return std::get<0>(lstm_->forward(x));
  }
  at::Tensor out(const at::Tensor& hidden) { return mlp_out_->forward(hidden) * shape_.output_scale; }

  DecoderShape shape_;
  torch::nn::LSTM lstm_{nullptr};
  torch::nn::Sequential mlp_out_{nullptr};
  LstmWeights weights_;
};

class MlpDecoder : public Decoder {
 public:
  explicit MlpDecoder(const DecoderShape& shape) : output_scale_(shape.output_scale) {
    register_module("mlp", mlp_);
    int64_t width = shape.in;
    for (const int64_t size : shape.layer_sizes) {
      mlp_->push_back(torch::nn::Linear(width, size));
      if (shape.layer_norm) mlp_->push_back(torch::nn::LayerNorm(torch::nn::LayerNormOptions({size})));
      mlp_->push_back(leaky_relu());
      width = size;
    }
    mlp_->push_back(torch::nn::Linear(width, shape.out));
  }

  Carry start(int64_t, const at::TensorOptions&) const override { return {}; }
  at::Tensor step(const at::Tensor& x, Carry&) override { return sequence(x); }
  at::Tensor sequence(const at::Tensor& x) override { return mlp_->forward(x) * output_scale_; }

 private:
  torch::nn::Sequential mlp_;
  double output_scale_;
};

}  // namespace

std::shared_ptr<Decoder> make_decoder(const DecoderShape& shape) {
  if (shape.lstm) return std::make_shared<LstmDecoder>(shape);
  return std::make_shared<MlpDecoder>(shape);
}

PoseNetwork::PoseNetwork(const Architecture& architecture)
    : architecture_(architecture), network_(register_module("network", Encoder(architecture.encoder))) {
  rule_ = {architecture.joints, architecture.position_steps, architecture.pose_module == PoseModule::vemg2pose,
           architecture.predict_vel};
  if (architecture.pose_module != PoseModule::pose) {
    decoder_ = register_module("decoder", make_decoder(architecture.decoder));
  }
}

at::Tensor PoseNetwork::forward(const at::Tensor& emg, const at::Tensor& initial) {
  // Under autocast poses are added up in float32, and LSTMs take their input in the type of their parameters.
  const at::Tensor features = network_->forward(emg).to(initial.scalar_type());
  at::Tensor poses;  // [batch, steps, joints] at the module's own rate
  if (architecture_.pose_module == PoseModule::pose) {
    poses = architecture_.predict_vel ? initial.unsqueeze(1) + features.cumsum(1) : features;
  } else {
    poses = roll_out(features, initial);
  }
  return interpolate_over_time(poses, architecture_.outputs(), Corners::half_pixel, /*out_by_step=*/false);
}

// The two interpolations differ on purpose, as in the reference: corners are aligned here, half pixels on the way up.
at::Tensor PoseNetwork::roll_out(const at::Tensor& features, at::Tensor state) {
  const int64_t steps = architecture_.rollout_steps;
  const at::Tensor sampled = interpolate_over_time(features, steps, Corners::aligned, /*out_by_step=*/true);
  const at::Tensor by_step = sampled.transpose(0, 1);  // [steps, batch, features]

  if (architecture_.state_condition && decoder_->lstm() != nullptr && rolls_out_lstm(by_step))
    return roll_out_lstm(by_step, state, *decoder_->lstm(), rule_).transpose(0, 1);
  std::vector<at::Tensor> states;
  const auto emit = [&](const at::Tensor& output) {
    state = rule_.next(state, output.to(state.scalar_type()), static_cast<int64_t>(states.size()));
    states.push_back(state);
  };
  if (architecture_.state_condition) {
    Carry carry = decoder_->start(features.size(0), features.options());
    for (const at::Tensor& input : by_step.unbind(0)) {
      emit(decoder_->step(torch::cat({input, state}, 1), carry));
    }
  } else {
    for (const at::Tensor& output : decoder_->sequence(by_step).unbind(0)) emit(output);
  }
  return torch::stack(states, 1);
}

}  // namespace headroom
