// Mixed precision as torch.autocast does it: inside, LibTorch computes matrix products and convolutions in bfloat16 or
// float16, what needs range in float32, and the rest in what it is given. Where train.precision says so the host opens
// a scope around step(); a plugin opens one to leave it. Needs LibTorch.
//
//   const AutocastScope exact(Autocast::off(x.device()));
//   return at::linalg_inv(x.to(torch::kFloat));
#pragma once

#include <ATen/autocast_mode.h>

namespace headroom::sdk {

struct Autocast {
  at::DeviceType device;
  bool enabled;
  at::ScalarType dtype;  // kBFloat16 or kHalf

  // Of this thread.
  static Autocast now(at::Device device) {
    return {device.type(), at::autocast::is_autocast_enabled(device.type()),
            at::autocast::get_autocast_dtype(device.type())};
  }
  static Autocast off(at::Device device) { return {device.type(), false, now(device).dtype}; }
};

// For this thread. The end of the outermost one drops the parameters that were cast for it.
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

}  // namespace headroom::sdk
