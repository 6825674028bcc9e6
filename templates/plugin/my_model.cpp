// my_model: a model plugin. Here a small network that learns `y` from `x`; put your own in its place.
// headroom/model.hpp lists every member that the class may have.
#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

class MyModel : public torch::nn::Module {
 public:
  // What it can do beyond float32 (HR_MODEL_FP64, ...), and how it draws random numbers.
  static constexpr uint32_t capabilities = HR_MODEL_FP64 | HR_RNG_KEYED;

  // The keys of [model.options].
  static OptionList options() {
    return {opt_i64("hidden").def(32).min(1).help("width of the hidden layer"),
            opt_f64("dropout").def(0.1).min(0).max(1).help(
                "share of the hidden layer that a training sample does without")};
  }

  // The fields that the network takes: `headroom plugins check` makes them up and steps it without data.
  static std::vector<Input> inputs(const Options&) {
    return {{.name = "x", .shape = {any_size}}, {.name = "y", .shape = {any_size}}};
  }

  // `fields` are what the datasource gives: names, shapes, units.
  MyModel(const Options& options, const Fields& fields) : dropout_(options.f64("dropout")) {
    const int64_t inputs = fields.at("x").elements(), outputs = fields.at("y").elements(),
                  hidden = options.i64("hidden");
    hidden_ = register_module("hidden", torch::nn::Linear(inputs, hidden));
    head_ = register_module("head", torch::nn::Linear(hidden, outputs));
  }

  std::vector<Output> outputs() const { return {{.name = "prediction"}, {.name = "target", .role = HR_TARGET}}; }
  std::vector<Metric> metrics() const { return {{.name = "rmse", .reduction = HR_ROOT_MEAN}}; }

  // One forward pass. The loss is a sum, and the weight the number of elements in it: never a mean. The host calls
  // backward(), divides once for each optimizer step, and so may divide a batch as memory asks.
  StepOutput step(const Call& call, const Batch& batch) {
    const at::Tensor x = batch.at("x").flatten(1), y = batch.at("y").flatten(1);
    const at::Tensor hidden = dropout(call, "hidden"_site, torch::relu(hidden_->forward(x)), dropout_);
    const at::Tensor prediction = head_->forward(hidden);
    const at::Tensor squared = (prediction - y).square().sum();
    const auto weight = static_cast<double>(y.numel());
    return {squared, weight, {prediction, y}, {{squared, weight}}};
  }

 private:
  double dropout_;
  torch::nn::Linear hidden_{nullptr}, head_{nullptr};
};

}  // namespace

HEADROOM_PLUGIN(.id = "my_model", .version = "0.1", .summary = "A network with one hidden layer",
                .interfaces = {headroom::sdk::model<MyModel>()});
