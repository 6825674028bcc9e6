// A model for tests of memory: parameters, activations and memory of its own of the sizes that are asked for, cheap to
// compute with.
#include <chrono>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>

#include "headroom/model.hpp"

namespace {

using namespace headroom::sdk;

constexpr int64_t mib = 1 << 20;

// Memory that only malloc knows of, each page touched.
using Own = std::unique_ptr<char, decltype(&std::free)>;

Own take(int64_t bytes) {
  Own own(static_cast<char*>(std::malloc(static_cast<size_t>(bytes))), &std::free);
  if (own == nullptr) throw std::bad_alloc();
  volatile char* const first = own.get();
  for (int64_t i = 0; i < bytes; i += 4096) first[i] = 1;
  return own;
}

class HungryModel : public torch::nn::Module {
 public:
  // Draws nothing: any division of a window computes the same.
  static constexpr uint32_t capabilities = HR_MODEL_FP64;

  static OptionList options() {
    return {opt_i64("activation_mib").def(1).min(0).help("MiB that a sample keeps for backward, in float32"),
            opt_i64("layers").def(1).min(1).help("tensors that activation_mib is divided into"),
            opt_i64("parameters_mib").def(0).min(0).help("MiB of one weight, in float32; 0: one row"),
            opt_i64("malloc_mib").def(0).min(0).help("MiB of malloc that nobody is told of"),
            opt_i64("malloc_at_step").def(0).min(0).help("step from which malloc_mib is held"),
            opt_string("malloc_for").def("good").choices({"good", "call"}).help("how long it is held"),
            opt_i64("sleep_ms").def(0).min(0).help("milliseconds that a call takes at least, spread over its layers")};
  }

  HungryModel(const Options& options, const Fields& fields)
      : layers_(options.i64("layers")),
        layer_numbers_(options.i64("activation_mib") * mib / 4 / layers_),
        malloc_bytes_(options.i64("malloc_mib") * mib),
        malloc_at_step_(options.i64("malloc_at_step")),
        for_good_(options.string("malloc_for") == "good"),
        sleep_(options.i64("sleep_ms")) {
    const int64_t inputs = std::min<int64_t>(fields.at("x").elements(), 1024);
    const int64_t rows = std::max<int64_t>(1, options.i64("parameters_mib") * mib / 4 / inputs);
    weight_ = register_parameter("weight", torch::full({rows, inputs}, 0.1 / static_cast<double>(inputs)));
    scale_ = register_parameter("scale", torch::full({1}, 0.1));
  }

  std::vector<Output> outputs() const { return {{.name = "prediction"}, {.name = "target", .role = HR_TARGET}}; }
  std::vector<Metric> metrics() const { return {{.name = "rmse", .reduction = HR_ROOT_MEAN}}; }

  StepOutput step(const Call& call, const Batch& batch) {
    Own own(nullptr, &std::free);
    if (malloc_bytes_ > 0 && call.training() && static_cast<int64_t>(call.step()) >= malloc_at_step_ && !kept_)
      own = take(malloc_bytes_);
    const at::Tensor x = batch.at("x").narrow(1, 0, weight_.size(1)), target = batch.at("y").squeeze(1);
    const at::Tensor prediction = torch::linear(x, weight_).mean(1) + felt(x.mean(1, /*keepdim=*/true));
    const at::Tensor squared = (prediction - target).square().sum();
    const auto weight = static_cast<double>(prediction.numel());
    if (for_good_ && own) kept_ = std::move(own);
    return {squared, weight, {prediction, target}, {{squared, weight}}};
  }

 private:
  // A number for each sample by way of layers_ tensors; each operation keeps its result for backward and nothing else.
  at::Tensor felt(const at::Tensor& level) const {
    at::Tensor layer = (level * scale_).expand({level.size(0), std::max<int64_t>(1, layer_numbers_)});
    for (int64_t i = 0; i < layers_; ++i) {
      std::this_thread::sleep_for(sleep_ / layers_);
      layer = layer.tanh();
    }
    return layer.mean(1);
  }

  int64_t layers_, layer_numbers_, malloc_bytes_, malloc_at_step_;
  bool for_good_;
  std::chrono::milliseconds sleep_;
  Own kept_{nullptr, &std::free};
  at::Tensor weight_, scale_;
};

}  // namespace

HEADROOM_PLUGIN(.id = "hungry_model", .version = "1.0", .summary = "Activations and parameters for tests of memory",
                .interfaces = {headroom::sdk::model<HungryModel>()});
