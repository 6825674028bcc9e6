// A model that offers headroom.predict/1, for tests of `plugins check`, inference and export. Its option is a mistake
// of predict(); the last two are mistakes only where it is traced.
#include <limits>

#include "headroom/sdk/predict_model.hpp"

namespace {

using namespace headroom::sdk;

class PredictingModel : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64;
  static constexpr const char* target_field = "y";

  static OptionList options() {
    return {opt_string("mistake")
                .def("none")
                .choices({"none", "needs_target", "couples", "few_channels", "echoes", "gives_nan", "decides_by_values",
                          "burns_in_count"})
                .help("what a prediction does wrong")};
  }
  static std::vector<Input> inputs(const Options&) {
    return {{.name = "x", .shape = {any_size, 3}}, {.name = "y", .shape = {any_size, 2}}};
  }

  PredictingModel(const Options& options, const Fields&) : mistake_(options.string("mistake")) {
    head_ = register_module("head", torch::nn::Linear(3, 2));
  }

  std::vector<Output> outputs() const { return {{.name = "prediction"}, {.name = "target", .role = HR_TARGET}}; }

  StepOutput step(const Call&, const Batch& batch) {
    const at::Tensor prediction = head_->forward(batch.at("x"));
    at::Tensor target = batch.at("y");
    // Of trial_source: one value a step, which both channels learn.
    if (target.dim() == 2) target = target.unsqueeze(-1).expand_as(prediction);
    return {(prediction - target).square().sum(), static_cast<double>(target.numel()), {prediction, target}};
  }

  std::vector<at::Tensor> predict(const Call&, const Batch& batch) {
    at::Tensor prediction = head_->forward(batch.at("x"));
    if (mistake_ == "needs_target") prediction = prediction + 0.0 * batch.at("y");
    if (mistake_ == "couples") prediction = prediction - prediction.mean(0, /*keepdim=*/true);
    if (mistake_ == "few_channels") prediction = prediction.narrow(2, 0, 1);
    if (mistake_ == "echoes") return {batch.at("x"), at::Tensor()};
    if (mistake_ == "gives_nan") return {prediction * std::numeric_limits<double>::quiet_NaN(), prediction};
    if (mistake_ == "decides_by_values" && batch.at("x").sum().item<double>() > 0.0) prediction = -prediction;
    if (mistake_ == "burns_in_count") prediction = prediction.reshape({batch.at("x").size(0), -1, 2});
    return {prediction, at::Tensor()};
  }

 private:
  std::string mistake_;
  torch::nn::Linear head_{nullptr};
};

}  // namespace

HEADROOM_PLUGIN(.id = "predicting_model", .version = "1.0", .summary = "Predicts, rightly or wrongly",
                .interfaces = {model<PredictingModel>(), predict<ModelSide<PredictingModel>>()});
