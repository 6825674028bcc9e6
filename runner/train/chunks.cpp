#include "train/chunks.hpp"

#include <algorithm>
#include <cmath>

namespace headroom {

std::vector<double> open_loop(const Chunks& chunks) {
  const uint64_t steps = chunks.steps(), chunk = chunks.horizon * chunks.channels;
  std::vector<double> actions;
  actions.reserve(steps * chunks.channels);
  for (uint64_t asked = 0; asked < steps; asked += chunks.horizon) {
    const uint64_t executed = std::min(chunks.horizon, steps - asked);
    const auto answer = std::span(chunks.values).subspan(asked * chunk, executed * chunks.channels);
    actions.insert(actions.end(), answer.begin(), answer.end());
  }
  return actions;
}

std::vector<double> ensembled(const Chunks& chunks, double decay) {
  const uint64_t steps = chunks.steps(), channels = chunks.channels;
  std::vector<double> actions(steps * channels, 0.0);
  for (uint64_t step = 0; step < steps; ++step) {
    // Of the answers made up to here, the last `horizon` ones reach this step.
    const uint64_t oldest = step + 1 - std::min(chunks.horizon, step + 1), made = step + 1 - oldest;
    double total = 0.0;
    for (uint64_t i = 0; i < made; ++i) total += std::exp(-decay * static_cast<double>(i));
    for (uint64_t i = 0; i < made; ++i) {
      const double weight = std::exp(-decay * static_cast<double>(i)) / total;
      const uint64_t asked = oldest + i, row = asked * chunks.horizon + (step - asked);
      for (uint64_t c = 0; c < channels; ++c)
        actions[step * channels + c] += weight * chunks.values[row * channels + c];
    }
  }
  return actions;
}

std::vector<double> held_position(std::span<const double> recorded, uint64_t horizon, uint64_t channels) {
  std::vector<double> held;
  held.reserve(recorded.size());
  for (uint64_t step = 0; step < recorded.size() / channels; ++step) {
    const uint64_t asked = step / horizon * horizon;
    const auto before = recorded.subspan((asked == 0 ? 0 : asked - 1) * channels, channels);
    held.insert(held.end(), before.begin(), before.end());
  }
  return held;
}

std::vector<uint64_t> question_starts(uint64_t steps, uint64_t horizon, uint64_t overlap) {
  // A stride of at least 1, so that the questions move on.
  const uint64_t last = steps > horizon ? steps - horizon : 0, stride = horizon - std::min(overlap, horizon - 1);
  std::vector<uint64_t> starts;
  for (uint64_t start = 0; start < last; start += stride) starts.push_back(start);
  starts.push_back(last);
  return starts;
}

}  // namespace headroom
