// The arguments and results of one step of a model. Needs LibTorch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <torch/torch.h>
#include <utility>
#include <vector>

#include "headroom/sdk/error.hpp"
#include "headroom/sdk/fields.hpp"

namespace headroom::sdk {

// Borrowed for the step.
class Call {
 public:
  // `recompute_kinds`: as in hr_model_torch.
  explicit Call(const hr_call* call, bool wants_outputs = true, bool wants_metrics = true,
                const char* const* recompute_kinds = nullptr)
      : call_(call), wants_outputs_(wants_outputs), wants_metrics_(wants_metrics), recompute_kinds_(recompute_kinds) {}

  bool training() const { return call_->mode == HR_TRAIN; }
  int64_t step() const { return call_->step; }  // optimizer steps done so far
  uint64_t count() const { return call_->count; }
  uint64_t key(uint64_t sample) const { return call_->sample_key[sample]; }
  at::Device device() const {
    if (call_->device_type == kDLCPU) return at::kCPU;
    if (call_->device_type == kDLCUDA) return {at::kCUDA, static_cast<at::DeviceIndex>(call_->device_id)};
    throw Error(HR_UNSUPPORTED, "the C++ SDK knows the devices cpu and cuda");
  }
  bool wants_outputs() const { return wants_outputs_; }
  bool wants_metrics() const { return wants_metrics_; }

  // Whether calls of this kind keep no activations and are computed again in backward; for checkpoint()
  // (recompute.hpp).
  bool recomputes(std::string_view kind) const {
    for (uint64_t i = 0; recompute_kinds_ != nullptr && recompute_kinds_[i] != nullptr; ++i) {
      if (recompute_kinds_[i] == kind) return (call_->recompute >> i & 1) != 0;
    }
    throw Error(HR_INTERNAL, "the model does not name '" + std::string(kind) + "' among its recompute_kinds");
  }

 private:
  friend class KeptCall;
  const hr_call* call_;
  bool wants_outputs_, wants_metrics_;
  const char* const* recompute_kinds_;
};

// A copy of a Call that outlives its step, so that backward draws from the same sample keys as forward.
class KeptCall {
 public:
  explicit KeptCall(const Call& call)
      : native_(load(*call.call_)), keys_(native_.sample_key, native_.sample_key + native_.count), kept_(call) {
    native_.sample_key = keys_.data();
    native_.recompute = 0;  // inside a recomputed call nothing is recomputed
    kept_.call_ = &native_;
  }
  KeptCall(const KeptCall&) = delete;
  KeptCall& operator=(const KeptCall&) = delete;
  const Call& operator*() const { return kept_; }

 private:
  hr_call native_;
  std::vector<uint64_t> keys_;
  Call kept_;
};

// The batch's tensors by field name: [count, field.shape...]. They must not be written to.
class Batch {
 public:
  Batch(const Fields& fields, const hr_tensor* tensors) : fields_(&fields), tensors_(tensors) {}

  bool has(std::string_view name) const { return find(name) != nullptr; }

  // Undefined where the source does not give the field, or not in this batch.
  at::Tensor operator[](std::string_view name) const {
    const at::Tensor* tensor = find(name);
    return tensor != nullptr ? *tensor : at::Tensor();
  }
  // Throws HR_INVALID_ARGUMENT instead.
  at::Tensor at(std::string_view name) const {
    if (const at::Tensor* tensor = find(name)) return *tensor;
    throw Error(HR_INVALID_ARGUMENT, "the batch lacks the field '" + std::string(name) + "', which the model needs");
  }

 private:
  const at::Tensor* find(std::string_view name) const {
    for (std::size_t i = 0; i < fields_->size(); ++i) {
      if ((*fields_)[i].name == name) {
        const auto* tensor = reinterpret_cast<const at::Tensor*>(tensors_[i]);
        return tensor != nullptr && tensor->defined() ? tensor : nullptr;
      }
    }
    return nullptr;
  }

  const Fields* fields_;
  const hr_tensor* tensors_;
};

// A 0-dim tensor, or a number that becomes one (float64, so that counts stay exact). A tensor keeps its type: count in
// int64 or float64, as mask.sum() of a bool mask does; float32 cannot count past 2^24.
struct ZeroDim {
  at::Tensor tensor;
  double number = 0.0;

  ZeroDim() = default;
  ZeroDim(at::Tensor value) : tensor(std::move(value)) {}  // NOLINT: converts on purpose
  ZeroDim(double value) : number(value) {}                 // NOLINT

  at::Tensor like(const at::Tensor& other, at::ScalarType dtype) const {
    return tensor.defined() ? tensor : at::full({}, number, other.options().dtype(dtype).requires_grad(false));
  }
};

// One metric: the sum over what was measured, and its weight.
struct MetricSum {
  ZeroDim sum, weight;
};

// A sum, never a mean: the host divides once for each window. weight 0: no element is valid; loss_sum is then 0, never
// NaN.
struct StepOutput {
  at::Tensor loss_sum;                   // 0-dim, with its graph when training
  ZeroDim weight;                        // the number of valid elements
  std::vector<at::Tensor> outputs = {};  // as outputs() declares; may be left empty unless call.wants_outputs()
  std::vector<MetricSum> metrics = {};   // as metrics() declares; may be left empty unless call.wants_metrics()
};

}  // namespace headroom::sdk
