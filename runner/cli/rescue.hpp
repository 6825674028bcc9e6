// `headroom run` with a [rescue]: a run that does not fit, or was killed for lack of memory, begins again, one rung
// further down.
#pragma once

#include "cli/command_line.hpp"

namespace headroom {

// Hands the run over to the trainer, and again for each rung as long as it ends with exit 5 or by the kernel's OOM
// killer and there is one. Returns the last exit code.
int run_with_rescue(const RunWords& run, const CommandLine& line);

}  // namespace headroom
