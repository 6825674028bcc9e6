// data.shuffle and data.grouped, decided.
#pragma once

#include <optional>
#include <string>

#include "arrays/array_session.hpp"
#include "config/experiment.hpp"
#include "data/order.hpp"

namespace headroom {

struct OrderChoice {
  Shuffle shuffle = Shuffle::global;
  Grouping grouping;         // of the grouped order
  std::string name;          // "global", "grouped", "sequential"
  uint64_t mixed_bytes = 0;  // decoded chunks that the grouped order goes through at a time, about
  uint64_t runs_there = 0;   // of the grouped order, in all of the source
};

// "auto" is grouped where most bytes lie in compressed chunks, else global: it follows from how the data is stored and
// from no setting of memory or speed. So does an automatic run length, of at most 2048 samples: of compressed chunks 16
// MiB of decoded data are mixed at a time; elsewhere, and where that is fewer than 8 samples a run, it is as long as
// the groups (sequences, episodes) are on average. `samples` and `groups` (0: not known) are what all of the source
// has.
OrderChoice choose_order(const DataSection& data, const StoredLayout& stored, uint64_t samples, uint64_t groups = 0);

// "data.shuffle = "auto" is "grouped": ...", for the log; "" where nothing was left to decide.
std::string order_line(const DataSection& data, const OrderChoice& choice, const StoredLayout& stored);

// What to set when what is mixed at a time does not fit data.chunk_cache_size, or a grouped order that was asked for
// mixes all there is; else "".
std::string order_warning(const DataSection& data, const OrderChoice& choice);

}  // namespace headroom
