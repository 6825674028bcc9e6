// Mixed precision as torch.autocast does it: inside, LibTorch computes matrix products and convolutions in bfloat16 or
// float16, what needs range in float32, and the rest in what it is given. Where train.precision says so the host opens
// a scope around step(); a plugin opens one to leave it. Needs LibTorch.
//
//   const AutocastScope exact(Autocast::off(x.device()));
//   return at::linalg_inv(x.to(torch::kFloat));
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

namespace headroom::sdk {

struct Autocast {
  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;  // kBFloat16 or kHalf

  // The state of this thread.
  static Autocast now(at::Device device) {
    return {device.type(), at::autocast::is_autocast_enabled(device.type()),
            at::autocast::get_autocast_dtype(device.type())};
  }
  static Autocast off(at::Device device) { return {device.type(), false, now(device).dtype}; }
};

// Sets autocast for this thread in a scope. The end of the outermost scope clears the cache of cast parameters.
class AutocastScope {
 public:
  explicit AutocastScope(const Autocast& wanted) : before_(Autocast::now(wanted.device)) {
    at::autocast::increment_nesting();
    set(wanted);
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;
  ~AutocastScope() {
    set(before_);
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
  }

 private:
  static void set(const Autocast& state) {
    at::autocast::set_autocast_enabled(state.device, state.enabled);
    at::autocast::set_autocast_dtype(state.device, state.dtype);
  }
  Autocast before_;
};

// Whether oneDNN, which LibTorch uses for convolutions on the CPU, supports `dtype` on this processor. Without it
// LibTorch computes one product at a time, a hundred times slower.
inline bool onednn_works_in(at::ScalarType dtype) {
  const auto ask = [](const char* operation) {
    const auto found = c10::Dispatcher::singleton().findSchema({operation, ""});
    return found && found->typed<bool()>().call();
  };
  static const bool bfloat16 = ask("mkldnn::_is_mkldnn_bf16_supported");
  static const bool float16 = ask("mkldnn::_is_mkldnn_fp16_supported");
  if (dtype == at::kBFloat16) return bfloat16;
  return dtype == at::kHalf ? float16 : true;
}

// Returns convolve(x), under autocast as it is; on a CPU that has no convolution in autocast's type, in float32.
template <class Convolve>
at::Tensor autocast_convolution(const at::Tensor& x, const Convolve& convolve) {
  const Autocast now = Autocast::now(x.device());
  if (!x.is_cpu() || !now.enabled || onednn_works_in(now.dtype)) return convolve(x);
  const AutocastScope exact(Autocast::off(x.device()));
  return convolve(x.to(at::kFloat));
}

}  // namespace headroom::sdk
