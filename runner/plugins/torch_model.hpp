// A headroom.model.torch/1 plugin as a C++ class; the training loop sees only this class. Needs LibTorch.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <torch/torch.h>
#include <vector>

#include "headroom/sdk/autocast.hpp"
#include "plugins/library.hpp"
#include "plugins/source.hpp"

namespace headroom {

struct Parameter {
  std::string name, group;
  hr_param_kind kind = HR_PARAMETER;
  bool inert = false;
  double lr_scale = 1.0, weight_decay_scale = 1.0;
  int64_t frozen_until_step = 0;
  double lr = 0.0;               // > 0: replaces train.optimizer.lr x lr_scale
  at::Tensor* tensor = nullptr;  // the plugin's own tensor object; moved with set_data()
  // Where its elements lie if they are pages of a file (train/inert_weights.hpp); NULL: they are in memory.
  const void* pages_of_file = nullptr;
  // Set by the experiment (train.groups): replaces train.optimizer.weight_decay x weight_decay_scale.
  std::optional<double> weight_decay = {};

  // Whether it ever has a gradient and optimizer state.
  bool trains() const { return kind == HR_PARAMETER && !inert && frozen_until_step != INT64_MAX; }
};

// For an output that holds class scores (headroom.classes/1).
struct ClassInfo {
  int64_t count = 0;
  std::string field;               // the source's field with the target; "": there is none
  std::vector<std::string> names;  // one for each class, or none
  bool counted = false;            // Model::balance() is to be called
};

struct OutputInfo {
  std::string name, unit;
  hr_role role = HR_PREDICTION;
  std::optional<ClassInfo> classes = {};
};

struct MetricInfo {
  std::string name, unit;
  hr_reduction reduction = HR_MEAN;
  hr_better better = HR_LOWER;
};

// The result of one forward pass.
struct StepResult {
  at::Tensor loss_sum, weight;      // 0-dim, on the model's device; loss_sum carries the graph in train mode
  std::vector<at::Tensor> outputs;  // empty unless asked for
  at::Tensor metrics;               // float64 [metric_count, 2] of (sum, weight)
};

// The tag that host and plugin must share: TORCH_VERSION | cxx11 ABI | __GXX_ABI_VERSION.
const char* host_torch_tag();

// [control] except step(), which is [compute].
class Model {
 public:
  // Builds on the CPU in float32. Error(bad_input) with the plugin's sentence when options and fields do not suit.
  Model(const Library& library, const OptionValues& options, std::vector<Field> fields, uint64_t seed,
        Session& session = *Session::of_process());
  Model(Model&&) = delete;
  ~Model();

  const std::string& id() const { return id_; }
  uint32_t capabilities() const { return capabilities_; }
  const std::vector<Field>& fields() const { return fields_; }
  // Parameters, buffers and derived, in the plugin's order.
  std::vector<Parameter>& parameters() { return parameters_; }
  const std::vector<OutputInfo>& outputs() const { return outputs_; }
  const std::vector<MetricInfo>& metrics() const { return metrics_; }

  // Moves every tensor in place; floating ones to `dtype`.
  void to(at::Device device, at::ScalarType dtype);

  // step() and predict() compute under autocast to `dtype` from here on; nullopt: in the parameters' own.
  void autocast(std::optional<at::ScalarType> dtype) { autocast_ = dtype; }

  // `batch` in the order of fields(), undefined where a field is absent. Error(plugin) where the plugin breaks its
  // contract (model_contract.hpp); a c10::OutOfMemoryError of the plugin comes back as one. Outputs are never narrower
  // than float32.
  StepResult step(hr_mode mode, int64_t step, std::span<const uint64_t> sample_keys, std::span<const at::Tensor> batch,
                  bool want_outputs = false);

  // Adds the gradients of `loss`: the loss_sum of the last step(), or that times a number. A c10::OutOfMemoryError of
  // the plugin comes back as one; any other error of the graph is Error(plugin), one of whoever made it. `only` (empty:
  // all): the parameters whose gradients change. REQUIRES: `only` is empty where runs_backward().
  void backward(const at::Tensor& loss, at::TensorList only = {});

  // The plugin runs its backward passes itself (headroom.backward/1).
  bool runs_backward() const { return backward_ != nullptr; }

  // The model's side of headroom.predict/1. NULL: the plugin lacks it, and predict() must not be called.
  const hr_predict* predictor() const { return predictor_; }
  // Outputs from inputs alone, undefined where they need a target; the first prediction is [samples, K, channels]
  // or [samples, K, colours, height, width].
  // Error(plugin) otherwise, and as step().
  std::vector<at::Tensor> predict(int64_t step, std::span<const uint64_t> sample_keys,
                                  std::span<const at::Tensor> batch);

  // Passes to the plugin how often each class of output `i` occurs in the training split. REQUIRES: it is `counted`.
  // [control]
  void balance(size_t i, std::span<const uint64_t> counts);

  const std::vector<std::string>& recompute_kinds() const { return recompute_kinds_; }
  // Kinds of calls whose intermediate results are computed again in backward, from the next step on, instead of being
  // kept; each must be one of recompute_kinds().
  void recompute(std::span<const std::string> kinds);

  // headroom.gc/1: the plugin frees memory that it can do without. Returns the bytes that it says it freed; 0 without
  // the interface. `level` is HR_TRIM_CACHES or HR_TRIM_ALL.
  int64_t trim(int level);

  bool has_state() const { return state_ != nullptr; }
  std::string save_state() const;  // headroom.state/1 bytes; "" without it
  void load_state(std::string_view bytes);

 private:
  at::Device device() const;
  sdk::Autocast autocast_of_call() const;
  hr_call call_of(hr_mode mode, int64_t step, std::span<const uint64_t> sample_keys) const;

  std::string id_;
  const hr_model_torch* api_ = nullptr;
  const hr_state* state_ = nullptr;
  const hr_gc* gc_ = nullptr;
  const hr_predict* predictor_ = nullptr;
  const hr_classes* classes_ = nullptr;
  const hr_backward* backward_ = nullptr;
  hr_model* handle_ = nullptr;
  uint32_t capabilities_ = 0;
  std::vector<std::string> recompute_kinds_;
  std::optional<at::ScalarType> autocast_;
  uint64_t recomputed_ = 0;  // bit i: recompute_kinds_[i]
  std::vector<Field> fields_;
  std::vector<Parameter> parameters_;
  std::vector<OutputInfo> outputs_;
  std::vector<MetricInfo> metrics_;
};

}  // namespace headroom
