// MT19937 (Matsumoto and Nishimura, ACM TOMACS 8(1), 1998) as LibTorch's generator of the CPU has it, many words at a
// time. Needs no LibTorch.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace headroom {

struct MersenneTwister {
  static constexpr uint32_t size = 624;  // words of the state; so many are drawn before it changes
  std::array<uint32_t, size> state{};
  uint32_t next = size;  // the word of the state that is drawn next; `size`: the state changes first

  // As if `count` words had been drawn.
  void skip(int64_t count);
};

// A word for each: its lower 24 bits / 2^24 * width + from, rounded once where the processor has FMA and twice where it
// does not.
void draw_uniform(MersenneTwister& generator, std::span<float> values, float from, float width);

}  // namespace headroom
