// Predictions of the next K steps, made at every step of a recording, put together to one value a step. Torch-free.
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

// All give [steps, channels], standardised as what they are given is.

// Asked every `horizon` steps, all of the answer executed.
std::vector<double> open_loop(const Chunks& chunks);

// Asked at every step. Of the predictions made for a step, the i-th oldest (from 0) weighs exp(-decay * i): with a
// decay above 0 the oldest counts most.
std::vector<double> ensembled(const Chunks& chunks, double decay);

// What was recorded at the step before each of open_loop()'s questions, until the next one; at first the first.
std::vector<double> held_position(std::span<const double> recorded, uint64_t horizon, uint64_t channels);

// Where questions of `horizon` steps begin, each reaching `overlap` steps into the one before, the last one ending with
// the recording.
std::vector<uint64_t> question_starts(uint64_t steps, uint64_t horizon, uint64_t overlap);

}  // namespace headroom
