// Decides data.shuffle = "auto" and the lengths of data.grouped, by how the data is stored.
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
  uint64_t mixed_bytes = 0;  // grouped: about how many bytes of decoded chunks are in use at a time
  uint64_t runs_there = 0;   // grouped: runs in all of the source
};

// "auto" is grouped where most bytes lie in compressed chunks, else global. It depends on how the data is stored and on
// no setting of memory or speed, so that results do not. The same holds for an automatic run length. With compressed
// chunks it is chosen so that 16 MiB of decoded data are mixed at a time. Elsewhere, and where that gives runs of fewer
// than 8 samples, it is the average length of a group (a sequence, an episode). It is at most 2048 samples. `samples`
// and `groups` (0: not known) are numbers of the whole source.
OrderChoice choose_order(const DataSection& data, const StoredLayout& stored, uint64_t samples, uint64_t groups = 0);

// For the log: what was decided and why; "" where the experiment says everything itself.
std::string order_line(const DataSection& data, const OrderChoice& choice, const StoredLayout& stored);

// For the log: a warning and what to set, where the chunks in use do not fit data.chunk_cache_size, or where the
// grouped order that was asked for mixes all runs; else "".
std::string order_warning(const DataSection& data, const OrderChoice& choice);

}  // namespace headroom
