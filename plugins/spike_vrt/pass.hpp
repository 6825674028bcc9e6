// One run through the network.
#pragma once

#include "headroom/model.hpp"
#include "window.hpp"

namespace headroom {

// Kinds of calls that backward may compute again, most memory saved per second first.
inline constexpr auto kRecomputed = sdk::recomputes("warping", "attention", "mlp");

struct Pass {
  const sdk::Call& call;  // of the step
  WindowTables& tables;   // kept between steps; lives as long as the model
};

}  // namespace headroom
