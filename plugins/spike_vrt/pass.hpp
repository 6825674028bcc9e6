// One run through the network.
#pragma once

#include "headroom/model.hpp"
#include "window.hpp"

namespace headroom {

// What may be computed again in backward, the best bargain first.
inline constexpr auto kRecomputed = sdk::recomputes("warping", "attention", "mlp");

struct Pass {
  const sdk::Call& call;  // whom it is for
  WindowTables& tables;   // what is kept between runs; lives as long as the model
};

}  // namespace headroom
