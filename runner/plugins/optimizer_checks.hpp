// The checks of `headroom plugins check` for an optimizer: steps of made-up parameters with fixed gradients.
#pragma once

#include <optional>

#include "plugins/check_list.hpp"
#include "plugins/library.hpp"

namespace headroom {

// Runs all checks. `library` is asked only if it is there. [control]
void check_optimizer(CheckList& list, const std::optional<Library>& library);

}  // namespace headroom
