// Starting the compute threads of a run.
#pragma once

namespace headroom {

// OpenMP's threads, before tensors take what their stacks need: OpenMP ends the process where it cannot start one.
// Error(does_not_fit). REQUIRES: at::set_num_threads(threads). [control]
void start_compute_threads(int threads);

}  // namespace headroom
