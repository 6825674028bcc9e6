// Signals to the trainer: SIGTERM and SIGUSR1 save and exit with 75, SIGINT saves and exits with 130. A second SIGINT
// ends the process at once.
#pragma once

#include "error.hpp"

namespace headroom {

void install_stop_signals();
// The exit code that a signal asked for; Exit::ok where none came. Checked between windows and between evaluation
// batches.
Exit stop_requested();

}  // namespace headroom
