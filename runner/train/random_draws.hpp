// LibTorch draws numbers one at a time: a model of 80 million weights waits half a second for its first ones.
#pragma once

namespace headroom {

// From now on `uniform_` and `normal_` give large float32 tensors on the CPU their numbers in parts, a thread each,
// and uniform ones with vectors, in the whole process. The numbers are LibTorch's, bit for bit, and its generator is
// left as LibTorch leaves it. Either stays as it is where this LibTorch rounds otherwise than these kernels do. Starts
// no thread itself.
struct FastDraws {
  bool uniform = false, normal = false;
};
FastDraws draw_random_numbers_fast();  // [control]

}  // namespace headroom
