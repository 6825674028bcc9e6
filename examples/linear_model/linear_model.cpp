// Linear regression, y = W x + b: the smallest model plugin that is worth running. It takes two fields, `x` of n
// numbers and `y` of m numbers, and minimises the squared error.
#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

class Linear : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_MODEL_BF16 | HR_MODEL_FP16 | HR_RNG_KEYED;

  static OptionList options() {
    return {opt_bool("bias").def(true).help("fit an intercept"),
            opt_f64("dropout").def(0.0).min(0).max(1).help("share of the inputs hidden from each training sample")};
  }

  // So that it can be tried without data.
  static std::vector<Input> inputs(const Options&) {
    return {{.name = "x", .shape = {any_size}}, {.name = "y", .shape = {any_size}}};
  }

  Linear(const Options& options, const Fields& fields) : dropout_(options.f64("dropout")) {
    const auto inputs = fields.at("x").elements(), outputs = fields.at("y").elements();
    linear_ = register_module(
        "linear", torch::nn::Linear(torch::nn::LinearOptions(inputs, outputs).bias(options.boolean("bias"))));
  }

  std::vector<Output> outputs() const { return {{.name = "prediction"}}; }
  std::vector<Metric> metrics() const { return {{.name = "rmse", .reduction = HR_ROOT_MEAN}}; }

  StepOutput step(const Call& call, const Batch& batch) {
    const at::Tensor x = dropout(call, "input"_site, batch.at("x").flatten(1), dropout_);
    const at::Tensor prediction = linear_->forward(x);
    const at::Tensor squared = (prediction - batch.at("y").reshape_as(prediction)).square().sum();
    const double weight = static_cast<double>(prediction.numel());
    return {squared, weight, {prediction}, {{squared, weight}}};
  }

 private:
  double dropout_;
  torch::nn::Linear linear_{nullptr};
};

}  // namespace

HEADROOM_PLUGIN(.id = "linear_model", .version = "1.0", .summary = "Linear regression: the smallest model plugin",
                .interfaces = {headroom::sdk::model<Linear>()});
