// libhdf5 in a process of its own: a file that makes it crash, hang or take all memory is a sentence. The child is
// started at the first question, answers many, and ends when nothing was asked for a while.
#pragma once

#include <filesystem>

#include "arrays/hdf5_questions.hpp"

namespace headroom {

// [any] Throws sdk::Error with the sentence of an answer that is none. Where no child can be started, libhdf5 answers
// here.
Hdf5Answer ask_hdf5(Hdf5Question question);

// [control] The program that ask_hdf5() starts; empty: libexec/headroom-hdf5 of this installation. For tests.
void set_hdf5_child(const std::filesystem::path& program);

// The child's side: answers what comes through `socket` until it closes or falls silent.
void answer_hdf5_questions(int socket);

}  // namespace headroom
