// Seeds LibTorch's own generator while a model is built. Needs LibTorch.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <cstdint>
#include <mutex>
#include <torch/torch.h>

namespace headroom::sdk::detail {

// Seeds LibTorch's CPU generator for a scope and puts its state back.
class SeededScope {
 public:
  explicit SeededScope(uint64_t seed) : generator_(at::detail::getDefaultCPUGenerator()) {
    std::scoped_lock lock(generator_.mutex());
    state_ = generator_.get_state();
    generator_.set_current_seed(seed);
  }
  SeededScope(const SeededScope&) = delete;
  SeededScope& operator=(const SeededScope&) = delete;
  ~SeededScope() {
    std::scoped_lock lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

}  // namespace headroom::sdk::detail
