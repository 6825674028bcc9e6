// Combines predictions of the next K steps, made at every step of a recording, into one value for each step.
// Torch-free.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace headroom {

// values[((step * horizon) + ahead) * channels + channel] is what was predicted at `step` for step + ahead.
struct Chunks {
  uint64_t horizon = 0, channels = 0;
  std::vector<double> values;
  uint64_t steps() const { return horizon * channels > 0 ? values.size() / (horizon * channels) : 0; }
};

// All of these return [steps, channels], in the units of their input.

// Open loop: the model is asked every `horizon` steps, and its whole answer is executed.
std::vector<double> open_loop(const Chunks& chunks);

// Temporal ensembling: the model is asked at every step. Of the predictions made for one step, the i-th oldest (from 0)
// has the weight exp(-decay * i): with a decay above 0 the oldest counts most.
std::vector<double> ensembled(const Chunks& chunks, double decay);

// The baseline that holds a position: at each question of open_loop() it takes the value recorded one step before, and
// repeats it until the next question. The first question takes the first value.
std::vector<double> held_position(std::span<const double> recorded, uint64_t horizon, uint64_t channels);

// The steps at which questions of `horizon` steps begin. Each overlaps the one before by `overlap` steps; the last one
// ends with the recording.
std::vector<uint64_t> question_starts(uint64_t steps, uint64_t horizon, uint64_t overlap);

}  // namespace headroom
