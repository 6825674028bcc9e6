// The loader's batches of one window, from its first sample to its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "train/micro_batches.hpp"

namespace headroom {

// [compute] `loader` outlives it, and nobody else reads from it meanwhile.
class WindowBatches {
 public:
  // Samples [first, end) of `epoch`, counted in the epoch's order; the loader stands at `first`.
  WindowBatches(Loader& loader, uint64_t epoch, uint64_t first, uint64_t end)
      : loader_(loader), epoch_(epoch), first_(first), end_(end), at_(first) {}

  // nullopt at the window's end. What runs out of memory is read again.
  std::optional<Batch> next(Retry& retry) {
    if (at_ >= end_) return std::nullopt;
    auto batch = read_batch(
        retry, [&] { return loader_.next(); }, [&] { seek(at_); });
    at_ = std::min(end_, at_ + static_cast<uint64_t>(loader_.batch_size()));
    return batch;
  }

  // To the window's first sample.
  void rewind() { seek(at_ = first_); }

 private:
  void seek(uint64_t sample) { loader_.seek(epoch_, sample, /*continuous=*/true); }

  Loader& loader_;
  const uint64_t epoch_, first_, end_;
  uint64_t at_;
};

}  // namespace headroom
