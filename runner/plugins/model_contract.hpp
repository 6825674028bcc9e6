// The contract of a model plugin (abi.h, headroom.model.torch/1): what it must declare, and what every call must keep
// to. A violation is Error(plugin) with the plugin's id. Used by torch_model.cpp alone.
#pragma once

#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "plugins/torch_model.hpp"

namespace headroom {

// The handle of a tensor that outlives the call.
hr_tensor handle_of(const at::Tensor& tensor);

// Reads the description of a new model and refuses what is inconsistent. [control]
class ModelDescription {
 public:
  // `api` and `handle` outlive it.
  ModelDescription(std::string id, const hr_model_torch& api, hr_model* handle)
      : id_(std::move(id)), api_(api), handle_(handle) {}

  std::vector<Parameter> parameters() const;
  std::vector<OutputInfo> outputs(const hr_classes* classes) const;  // `classes` may be NULL
  std::vector<MetricInfo> metrics() const;

 private:
  [[noreturn]] void refuse(const std::string& sentence) const;
  // Everything of one kind that the plugin declares; names must differ. `function` is the name of `describe`, which
  // fills a copy of `blank`; `info_of` converts it to the host's type.
  template <class Info, class Native, class Handle>
  std::vector<Info> each(const std::string& what, const std::string& function, uint32_t (*count_of)(const hr_model*),
                         hr_status (*describe)(Handle, uint32_t, Native*, hr_error*),
                         const std::type_identity_t<Native>& blank,
                         std::type_identity_t<Info (*)(const Native&)> info_of) const;
  void require_sound(const Parameter& parameter) const;
  std::optional<ClassInfo> classes_of(const hr_classes& classes, uint32_t i, const OutputInfo& output) const;
  void require_different_tensors(const std::vector<Parameter>& parameters) const;

  std::string id_;
  const hr_model_torch& api_;
  hr_model* handle_;
};

// Checks one call of a plugin with a batch: that it changes nothing it may not change, and that its results are
// complete. [compute]
class CallContract {
 public:
  // Records the state before the call. All arguments outlive it.
  CallContract(const std::string& id, std::span<const Field> fields, std::span<const at::Tensor> batch);

  const hr_tensor* handles() const { return handles_.data(); }
  // "x float32 [8, 3], y float32 [8, 1]": for the sentence of a call that failed.
  std::string batch_text() const;

  // Inputs are unchanged, because a plugin that writes to one would spoil retries and other micro-batches. LibTorch
  // records for backward as it did before.
  void require_unchanged() const;
  // loss_sum and weight are 0-dim, and the weight is not negative; outputs are there and detached; the metrics
  // have their shape.
  void require_result(const StepResult& result, std::span<const OutputInfo> outputs, size_t metric_count) const;
  // The first output with the role prediction is [samples, steps, channels] or pictures.
  void require_prediction(std::span<const at::Tensor> outputs, std::span<const OutputInfo> infos, size_t samples) const;

 private:
  [[noreturn]] void refuse(const std::string& sentence) const;
  void require_zero_dim(const char* name, const at::Tensor& tensor) const;

  const std::string& id_;
  std::span<const Field> fields_;
  std::span<const at::Tensor> batch_;
  std::vector<hr_tensor> handles_;
  std::vector<uint64_t> versions_;  // LibTorch's counters of the inputs
  bool records_;                    // for backward
};

}  // namespace headroom
