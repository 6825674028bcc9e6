// What `headroom plugins check` asks of an optimizer: steps of made-up parameters, with gradients that are the same
// each time.
#pragma once

#include <optional>

#include "plugins/check_list.hpp"
#include "plugins/library.hpp"

namespace headroom {

// All of them, one line each. `library` is asked only if it is there. [control]
void check_optimizer(CheckList& list, const std::optional<Library>& library);

}  // namespace headroom
