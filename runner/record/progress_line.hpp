// One line about how far an epoch is; a pure function of what is known and how wide the terminal is.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "record/terminal.hpp"

namespace headroom {

struct ProgressState {
  std::string epoch;  // "Epoch 3/10"
  std::string title;  // "train"
  int64_t done = 0;
  int64_t total = 0;         // 0: unknown
  double seconds_left = -1;  // negative: unknown
  std::vector<std::pair<std::string, double>> values = {};
};

// "loss 0.1234", "12.3 samples/s"; a split's name in front is dropped where the title already says it.
std::string shown_value(const std::string& name, double value, const std::string& title);

// For a terminal: never wider than `columns` - 1. What does not fit is left out, the least telling first.
std::string progress_bar(const ProgressState& state, const Terminal& terminal, int columns);

// For a pipe: everything, in plain words.
std::string progress_text(const ProgressState& state);

}  // namespace headroom
