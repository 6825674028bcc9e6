// What the trainer was asked by signal: SIGTERM and SIGUSR1 save and leave (75), SIGINT saves and leaves (130). A
// second SIGINT ends the process at once.
#pragma once

#include "error.hpp"

namespace headroom {

void install_stop_signals();
// Exit::ok while nobody asked; looked at between windows and between evaluation batches.
Exit stop_requested();

}  // namespace headroom
