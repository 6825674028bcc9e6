// A LibTorch model against the header of release 1.0, as it shipped: loss = sum of weight * x.
#include <torch/torch.h>

#include "headroom/abi.h"
#include "headroom/sdk/torch_tag.hpp"

static_assert(HR_ABI_MINOR == 0);

namespace {

at::Tensor weight;
at::Tensor& tensor(hr_tensor handle) { return *reinterpret_cast<at::Tensor*>(handle); }

hr_status create(const hr_host*, const hr_value*, const hr_field*, uint32_t, uint64_t, hr_model** out,
                 hr_error*) noexcept {
  weight = at::full({3}, 2.0);
  *out = reinterpret_cast<hr_model*>(&weight);
  return HR_OK;
}
void destroy(hr_model*) noexcept {}
uint32_t one(const hr_model*) noexcept { return 1; }
uint32_t none(const hr_model*) noexcept { return 0; }
hr_status param(hr_model*, uint32_t, hr_param* out, hr_error*) noexcept {
  *out = {sizeof(hr_param), 0,   "weight", HR_PARAMETER, 0, reinterpret_cast<hr_tensor>(&weight),
          nullptr,          1.0, 0.0,      1.0,          0};
  return HR_OK;
}
hr_status no_output(const hr_model*, uint32_t, hr_output*, hr_error*) noexcept { return HR_NOT_FOUND; }
hr_status no_metric(const hr_model*, uint32_t, hr_metric*, hr_error*) noexcept { return HR_NOT_FOUND; }
hr_status step(hr_model*, const hr_call* call, const hr_tensor* batch, hr_tensor loss_sum, hr_tensor weight_out,
               const hr_tensor*, hr_tensor, hr_error*) noexcept {
  tensor(loss_sum) = (tensor(batch[0]) * weight).sum();
  tensor(weight_out) = at::full({}, static_cast<double>(call->count), at::kDouble);
  return HR_OK;
}

const hr_model_torch table = {
    sizeof(hr_model_torch), 0, nullptr, create, destroy, one, param, none, no_output, none, no_metric, step, nullptr};

const void* get_interface(const char* id) noexcept { return std::string_view(id) == HR_MODEL_TORCH ? &table : nullptr; }

}  // namespace

extern "C" {
extern __attribute__((visibility("default"))) const hr_plugin headroom_plugin;
const hr_plugin headroom_plugin = {HR_MAGIC,
                                   HR_ABI_MAJOR,
                                   HR_ABI_MINOR,
                                   sizeof(hr_plugin),
                                   HR_PLUGIN_TORCH,
                                   "torch_model_1_0",
                                   "1.0",
                                   "A weight times x",
                                   HEADROOM_TORCH_TAG,
                                   0,
                                   0,
                                   0,
                                   nullptr,
                                   get_interface};
}
