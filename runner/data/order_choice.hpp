// data.shuffle and data.grouped, decided.
#pragma once

#include <optional>
#include <string>

#include "config/experiment.hpp"
#include "data/order.hpp"
#include "data/stored_layout.hpp"

namespace headroom {

struct OrderChoice {
  Shuffle shuffle = Shuffle::global;
  Grouping grouping;         // of the grouped order
  std::string name;          // "global", "grouped", "sequential"
  uint64_t mixed_bytes = 0;  // decoded chunks that the grouped order goes through at a time, about
};

// "auto" is grouped where most bytes lie in compressed chunks, else global: it follows from how the data is stored and
// from no setting of memory or speed. So does an automatic run length: what is mixed at a time is 16 MiB of decoded
// data, at most 2048 samples a run. `samples` is what all of the source has.
OrderChoice choose_order(const DataSection& data, const StoredLayout& stored, uint64_t samples);

// "data.shuffle = "auto" is "grouped": ...", for the log; "" where nothing was left to decide.
std::string order_line(const DataSection& data, const OrderChoice& choice, const StoredLayout& stored);

// What to set when what is mixed at a time does not fit data.chunk_cache_size; "" where it does.
std::string order_warning(const DataSection& data, const OrderChoice& choice);

}  // namespace headroom
