// libhdf5 in a child process. A damaged file may make libhdf5 crash, loop or take all memory; in the child that becomes
// an error of one sentence. The child is started with the first question, answers one at a time, and ends after 5 s
// without any.
#pragma once

#include <filesystem>

#include "arrays/hdf5_questions.hpp"

namespace headroom {

// The answer to `question`. Waits while another thread's question is answered. Throws sdk::Error with the answer's
// status and sentence, CannotWrite where the fault is in what was to be written, and sdk::Error where the child died of
// the question. Where no child can be started, libhdf5 is asked in this process. REQUIRES that the thread does not hold
// Hdf5Lock. [any]
Hdf5Answer ask_hdf5(Hdf5Question question);

// For tests: the program that ask_hdf5() starts. Empty: libexec/headroom-hdf5 of this installation. [control]
void set_hdf5_child(const std::filesystem::path& program);

// The child's main loop: answers what comes through `socket`, until it is closed or nothing came for 5 s.
void answer_hdf5_questions(int socket);

}  // namespace headroom
