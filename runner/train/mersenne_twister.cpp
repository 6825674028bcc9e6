#include "train/mersenne_twister.hpp"

#include <algorithm>

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

constexpr int64_t size = MersenneTwister::size, middle = 397;

HEADROOM_KERNEL_BODY uint32_t twisted(uint32_t word, uint32_t behind) {
  const uint32_t mixed = (word & 0x80000000u) | (behind & 0x7fffffffu);
  return (mixed >> 1) ^ (-(behind & 1) & 0x9908b0dfu);
}

// The distances between what a loop reads and writes are longer than any vector.
struct ChangeState {
  static HEADROOM_KERNEL_BODY void run(uint32_t* state) {
    for (int64_t i = 0; i < size - middle; ++i) state[i] = state[i + middle] ^ twisted(state[i], state[i + 1]);
    for (int64_t i = size - middle; i < size - 1; ++i)
      state[i] = state[i + middle - size] ^ twisted(state[i], state[i + 1]);
    state[size - 1] = state[middle - 1] ^ twisted(state[size - 1], state[0]);
  }
};

struct Draw {
  static HEADROOM_KERNEL_BODY void run(MersenneTwister* generator, float* values, int64_t count, float from,
                                       float width) {
    uint32_t* state = generator->state.data();
    int64_t next = generator->next;
    while (count > 0) {
      if (next == size) {
        ChangeState::run(state);
        next = 0;
      }
      const int64_t taken = std::min(count, size - next);
      const uint32_t* words = state + next;
      for (int64_t i = 0; i < taken; ++i) {
        uint32_t word = words[i];
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c5680u;
        word ^= (word << 15) & 0xefc60000u;
        word ^= word >> 18;
        values[i] = static_cast<float>(static_cast<int32_t>(word & 0xffffffu)) * 0x1p-24F * width + from;
      }
      next += taken;
      values += taken;
      count -= taken;
    }
    generator->next = static_cast<uint32_t>(next);
  }
};

}  // namespace

void MersenneTwister::skip(int64_t count) {
  while (count > size - next) {
    count -= size - next;
    sdk::run_kernel<ChangeState>(state.data());
    next = 0;
  }
  next += static_cast<uint32_t>(count);
}

void draw_uniform(MersenneTwister& generator, std::span<float> values, float from, float width) {
  sdk::run_kernel<Draw>(&generator, values.data(), static_cast<int64_t>(values.size()), from, width);
}

}  // namespace headroom
