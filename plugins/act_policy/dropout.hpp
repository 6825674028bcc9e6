// Keyed dropout as the layers use it.
#pragma once

#include "headroom/model.hpp"

namespace headroom {

// One place in the code that drops, and the call it drops for.
class Dropout {
 public:
  Dropout(const sdk::Call& call, double p, uint64_t site) : call_(&call), p_(p), site_(site) {}

  bool active() const { return call_->training() && p_ > 0.0; }
  // A place of its own within this one.
  Dropout at(uint64_t part) const { return {*call_, p_, sdk::site(site_, part)}; }

  // The leading axis of x is the batch.
  at::Tensor operator()(const at::Tensor& x) const { return active() ? sdk::dropout(*call_, site_, x, p_) : x; }
  // ReLU and dropout in one, in place of x [batch * rows, features]. Backward needs the result alone: no mask is kept.
  at::Tensor after_relu_(at::Tensor x) const;

 private:
  const sdk::Call* call_;
  double p_;
  uint64_t site_;
};

}  // namespace headroom
