// A model whose step breaks one rule of the contract, chosen by its option; and one that keeps state, trims, and runs
// backward itself.
#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

constexpr int64_t kMany = (int64_t{1} << 24) + 1;  // the first count that float32 does not have

class Odd : public torch::nn::Module {
 public:
  static constexpr uint32_t capabilities = HR_MODEL_FP64;

  static OptionList options() { return {opt_string("how").def("well").help("what to do wrong")}; }

  Odd(const Host&, const Options& options, const Fields& fields, uint64_t) : how_(options.string("how")) {
    if (how_ == "create_fails") fields.at("no_such_field");
    if (how_ == "create_c10") TORCH_CHECK(false, "a c10 error");
    weight_ = register_parameter("weight", torch::randn({3}));
    count_ = register_buffer("count", torch::zeros({}, torch::kLong));
    table_ = register_buffer("table", torch::ones({3}));
    if (how_ == "tied") register_parameter("tied_weight", weight_);
    if (how_ == "drops" || how_ == "keeps_eval")
      dropout_ = register_module("outer", torch::nn::Sequential(torch::nn::Dropout(0.5)));
    if (how_ == "keeps_eval") dropout_->eval();
  }

  void attributes(Parameter& parameter) {
    if (parameter.name == "weight") parameter.group = "all", parameter.lr_scale = 0.5, parameter.frozen_until_step = 3;
    if (parameter.name == "table") parameter.kind = HR_DERIVED, parameter.inert = true;
    if (how_ == "twins") parameter.name = "same";
    if (how_ == "scale") parameter.lr_scale = -1.0;
    if (how_ == "one_tensor" && parameter.name == "table") parameter.tensor = weight_;
    if (how_ == "own_lr" && parameter.name == "weight") parameter.lr = 1e-5;
  }
  std::vector<Output> outputs() const {
    if (how_ == "no_outputs") return {};
    return {{.name = "prediction", .unit = "m"}, {.name = "truth", .role = HR_TARGET}};
  }
  std::vector<Metric> metrics() const { return {{.name = "mae", .unit = "m"}, {.name = "hits", .better = HR_HIGHER}}; }

  StepOutput step(const Call& call, const Batch& batch) {
    if (how_ == "swallows") {
      try {
        at::empty({7});
      } catch (const c10::Error&) {
      }
    }
    at::Tensor x = batch.at("x");
    if (how_ == "writes") x.add_(1.0);
    if (how_ == "oom") TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory: you tried to allocate 7 bytes");
    if (how_ == "c10") x.reshape({1, 2, 3, 4, 5});
    if (dropout_) x = dropout_->forward(x);
    const at::Tensor y = x * weight_ * table_;
    at::Tensor loss = y.abs().sum();
    if (how_ == "mean") loss = y.abs().sum(1);
    if (how_ == "nothing") loss = at::Tensor();
    if (how_ == "narrow_loss") loss = loss.to(torch::kBFloat16);
    at::Tensor weight = at::full({}, static_cast<double>(call.count()));
    if (how_ == "weights") weight = at::ones({2});
    if (how_ == "many_as_int64") weight = at::full({}, kMany, torch::kInt64);
    StepOutput result{
        loss,
        how_ == "many_as_number" ? ZeroDim(static_cast<double>(kMany)) : ZeroDim(weight),
        {how_ == "narrow_output" ? y.to(torch::kBFloat16) : y, batch["absent"].defined() ? batch["absent"] : x},
        {{y.abs().sum(), 2.0}, {1.0, weight.sum()}}};
    if (how_ == "few_outputs") result.outputs.pop_back();
    if (how_ == "no_output") result.outputs[0] = at::Tensor();
    if (how_ == "few_metrics") result.metrics.pop_back();
    return result;
  }

  uint32_t model_capabilities() const { return how_ == "couples" ? capabilities | HR_COUPLES_SAMPLES : capabilities; }
  void backward(const at::Tensor& loss) {
    if (how_ == "backward_oom") TORCH_CHECK_WITH(OutOfMemoryError, false, "not enough memory for a gradient");
    if (how_ == "backward_fails") throw Error(HR_INTERNAL, "it went wrong on the way back");
    loss.backward();
  }
  // The option names the file.
  static std::vector<ModelFile> files(const Host&, const Options& options) {
    const std::string how = options.string("how");
    if (how.find('/') == std::string::npos) return {};
    return {{"its file", how}};
  }

  bool state_is_endless() const { return how_ == "endless_state"; }
  std::string save_state() const { return state_; }
  void load_state(std::string_view bytes) { state_ = bytes; }
  uint64_t trim(int level) { return static_cast<uint64_t>(level) * 100; }

 private:
  std::string how_, state_ = "fresh";
  torch::nn::Sequential dropout_{nullptr};
  at::Tensor weight_, count_, table_;
};

const hr_state& sdk_state() { return *static_cast<const hr_state*>(model<Odd>().find(HR_STATE)); }

// Claims more bytes than there can be. The SDK's save() would catch what the host throws; nothing here does.
hr_status save(hr_model* handle, void (*write)(void*, const void*, uint64_t), void* context, hr_error* error) noexcept {
  if (!headroom::sdk::detail::ModelBox<Odd>::from(handle)->model->state_is_endless())
    return sdk_state().save(handle, write, context, error);
  write(context, "", UINT64_MAX);
  return HR_OK;
}

const void* find_state(std::string_view id) {
  static const hr_state table{sizeof(hr_state), 0, save, sdk_state().load};
  return id == HR_STATE ? &table : nullptr;
}

}  // namespace

HEADROOM_PLUGIN(.id = "odd_model", .version = "1.0", .summary = "Breaks one rule at a time",
                .interfaces = {{.find = find_state}, headroom::sdk::model<Odd>()});
