// What the threads of Gloo, the library of the collectives, are doing.
#pragma once

#include <chrono>

namespace headroom {

// For a collective that does not end though all its connections are shut down. Gloo loses the failure of a send whose
// first write fails: the thread of the collective then sleeps for good. True where all such threads slept through
// `time` while the ones that serve the connections had their turn and found nothing: then nobody touches the tensors of
// a collective any more. False where that is not certain. [any]
bool gloo_has_nothing_to_do(std::chrono::milliseconds time);

}  // namespace headroom
