// Tells when backward has given a parameter its gradient, or has added to it.
#pragma once

#include <functional>

#include "plugins/torch_model.hpp"

namespace headroom {

// While it lives; a hook of the plugin is called before it. Of several on a parameter the last one made goes first.
// [compute] The parameter outlives it.
class GradientHook {
 public:
  GradientHook(const Parameter& parameter, std::function<void()> arrived);
  ~GradientHook();
  GradientHook(const GradientHook&) = delete;
  GradientHook& operator=(const GradientHook&) = delete;

 private:
  class Hook;
  const Parameter& parameter_;
};

}  // namespace headroom
