#include <algorithm>

#include "data/loader.hpp"
#include "data/slots.hpp"

namespace headroom {

namespace {

constexpr size_t io_width = 16;  // reads that wait for the disk at a time; a deeper queue gains little
constexpr int64_t most_enlarged_samples = 64, most_enlarged_bytes = 1 << 20;

}  // namespace

int64_t disk_ahead_bytes(int64_t built_bytes, bool training) {
  return std::min(most_disk_ahead_bytes, built_bytes / 8) / (training ? 1 : 2);
}

size_t batches_ahead(const LoaderOptions& options, int64_t batch_bytes) {
  if (options.num_workers <= 0) return 0;
  const int64_t batches = int64_t{std::max(1, options.prefetch_factor)} * options.num_workers;
  const int64_t fitting = options.prefetch_bytes / std::max<int64_t>(1, batch_bytes);
  return static_cast<size_t>(std::clamp<int64_t>(fitting, 1, batches));
}

size_t batches_ahead_of_disk(const LoaderOptions& options, int64_t batch_bytes) {
  const size_t ahead = batches_ahead(options, batch_bytes);
  if (ahead == 0) return 0;
  const int64_t room = std::min(options.disk_ahead_bytes, options.prefetch_bytes);
  return std::max(ahead, std::min(io_width, static_cast<size_t>(room / std::max<int64_t>(1, batch_bytes))));
}

LoaderOptions in_larger_batches(LoaderOptions options, const std::vector<int64_t>& field_bytes) {
  int64_t times = 1;
  const auto may_double = [&](int64_t samples) {
    return samples <= most_enlarged_samples / 2 && slot_bytes(field_bytes, 2 * samples) <= most_enlarged_bytes;
  };
  for (; may_double(options.slot_samples()); times *= 2) options.batch_size *= 2;
  options.prefetch_factor = static_cast<int>(std::max<int64_t>(1, options.prefetch_factor / times));
  return options;
}

int64_t batches_in_all(const LoaderOptions& options, int64_t batches_per_epoch) {
  int64_t batches = 0;
  if (options.epochs < 0 || __builtin_mul_overflow(options.epochs, batches_per_epoch, &batches)) return INT64_MAX;
  return batches;
}

size_t slot_count(const LoaderOptions& options, int64_t batch_bytes, int64_t batches) {
  // One more, for the batch that next() gave last.
  const size_t wanted = batches_ahead_of_disk(options, batch_bytes) + 1;
  return std::min(wanted, static_cast<size_t>(std::max<int64_t>(1, batches))) +
         static_cast<size_t>(std::max(0, options.extra_slots));
}

size_t extra_readers(const LoaderOptions& options, size_t batches_ahead_of_disk) {
  const auto workers = static_cast<size_t>(std::max(0, options.num_workers));
  const size_t width = std::min(io_width, batches_ahead_of_disk);
  return workers == 0 || width <= workers ? 0 : width - workers;
}

}  // namespace headroom
