// The plugin: fields into tensors, the policy, its loss.
#include <cstdint>

#include "headroom/model.hpp"
#include "headroom/sdk/predict_model.hpp"
#include "policy.hpp"
#include "score.hpp"

namespace headroom {
namespace {

using namespace sdk::literals;

class ActPolicy {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | HR_RNG_KEYED;
  static constexpr const char* target_field = "action";
  static constexpr double ensemble_decay = 0.01;  // the original's --temporal_agg
  static sdk::OptionList options() { return Architecture::options(); }

  ActPolicy(const sdk::Options& options, const sdk::Fields& fields)
      : architecture_(Architecture::read(options, fields)), policy_(std::make_shared<Policy>(architecture_)) {}

  torch::nn::Module& module() { return *policy_; }

  void attributes(sdk::Parameter& parameter) const {
    if (parameter.name == "position") parameter.kind = HR_DERIVED;
    if (parameter.name.starts_with("is_pad_head.")) parameter.frozen_until_step = INT64_MAX;  // in no loss
    parameter.inert = in_dead_decoder_layer(parameter.name);
    if (parameter.name.find("backbone") == std::string::npos || parameter.kind != HR_PARAMETER) return;
    parameter.group = "backbone";
    parameter.lr = architecture_.lr_backbone;
    if (architecture_.lr_backbone == 0.0) parameter.frozen_until_step = INT64_MAX;
  }

  std::vector<sdk::Output> outputs() const {
    return {{"prediction", HR_PREDICTION}, {"target", HR_TARGET}, {"mask", HR_MASK},
            {"is_pad_hat", HR_AUX},        {"mu", HR_AUX},        {"logvar", HR_AUX}};
  }

  std::vector<sdk::Metric> metrics() const { return metric_list(architecture_); }

  sdk::StepOutput step(const sdk::Call& call, const sdk::Batch& batch) {
    const Demonstration shown = demonstration(call, batch);
    const Prediction prediction = policy_->forward(call, {batch.at("image"), batch.at("qpos")}, shown);
    return scored(call, prediction, shown);
  }

  // The latent variable is its prior's mean, as when the original acts.
  std::vector<at::Tensor> predict(const sdk::Call& call, const sdk::Batch& batch) {
    const Prediction prediction = policy_->forward(call, {batch.at("image"), batch.at("qpos")}, {});
    return {prediction.actions, {}, {}, prediction.is_pad, {}, {}};
  }

 private:
  bool in_dead_decoder_layer(const std::string& name) const {
    static const std::string layers = "transformer.decoder.layers.";
    return name.starts_with(layers) && std::stoll(name.substr(layers.size())) >= architecture_.live_decoder_layers();
  }

  Demonstration demonstration(const sdk::Call& call, const sdk::Batch& batch) const {
    const at::Tensor actions = batch.at("action"), is_pad = batch["is_pad"], eps = batch["eps"];
    Demonstration shown;
    shown.actions = actions.narrow(1, 0, architecture_.chunk_size);
    shown.valid = is_pad.defined() ? is_pad.narrow(1, 0, architecture_.chunk_size).eq(0)
                                   : at::ones(shown.actions.sizes().slice(0, 2), actions.options().dtype(at::kBool));
    shown.eps =
        eps.defined() ? eps : sdk::normal(call, "latent"_site, {architecture_.latent_dim}, actions.scalar_type());
    return shown;
  }

  sdk::StepOutput scored(const sdk::Call& call, const Prediction& prediction, const Demonstration& shown) const {
    const at::Tensor error = error_of(prediction, shown);
    const Loss loss = loss_of(error, prediction);
    sdk::StepOutput result{.loss_sum = loss.l1 + loss.kl * architecture_.kl_weight,
                           .weight = static_cast<double>(call.count())};
    if (call.wants_outputs()) {
      result.outputs = {prediction.actions, shown.actions.contiguous(), shown.valid, prediction.is_pad,
                        prediction.mean,    prediction.logvar};
    }
    if (call.wants_metrics()) result.metrics = metrics_of(error, shown, loss, architecture_);
    return result;
  }

  Architecture architecture_;
  std::shared_ptr<Policy> policy_;
};

}  // namespace
}  // namespace headroom

HEADROOM_PLUGIN(.id = "act_policy", .version = "1.0.0",
                .summary = "ACT: camera images and joint positions to the next chunk of actions of two arms",
                .interfaces = {headroom::sdk::model<headroom::ActPolicy>(),
                               headroom::sdk::predict<headroom::sdk::ModelSide<headroom::ActPolicy>>()});
