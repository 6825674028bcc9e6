#include "data/order_choice.hpp"

#include <algorithm>

#include "memory/readable.hpp"

namespace headroom {

namespace {

// Fixed, since the order must not depend on a setting of memory.
constexpr uint64_t mixed_bytes = 16 << 20, longest_run = 2048;
constexpr uint64_t shortest_useful_run = 8;  // of so few neighbours none is read for another's sake

uint64_t sample_bytes(const StoredLayout& stored, uint64_t samples) {
  return samples == 0 ? 0 : stored.bytes / samples;
}

// A run reads its neighbours for each other's sake: of their chunks, or of what the samples of a group share.
uint64_t automatic_run_length(uint64_t runs, const StoredLayout& stored, uint64_t samples, uint64_t groups) {
  const uint64_t group = groups == 0 ? 0 : std::clamp<uint64_t>((samples + groups / 2) / groups, 1, longest_run);
  if (group > 0 && !stored.mostly_compressed()) return group;
  const uint64_t bytes = sample_bytes(stored, samples);
  if (bytes == 0) return longest_run;
  const uint64_t length = std::clamp<uint64_t>(mixed_bytes / runs / bytes, 1, longest_run);
  return length >= shortest_useful_run ? length : std::max(length, group);
}

std::string knobs(const Grouping& grouping) {
  return "{ runs = " + std::to_string(grouping.runs) + ", run_length = " + std::to_string(grouping.run_length) + " }";
}

}  // namespace

OrderChoice choose_order(const DataSection& data, const StoredLayout& stored, uint64_t samples, uint64_t groups) {
  OrderChoice choice;
  choice.name = data.shuffle != "auto" ? data.shuffle : stored.mostly_compressed() ? "grouped" : "global";
  choice.shuffle = choice.name == "grouped"      ? Shuffle::grouped
                   : choice.name == "sequential" ? Shuffle::sequential
                                                 : Shuffle::global;
  if (choice.shuffle != Shuffle::grouped) return choice;
  choice.grouping.runs = static_cast<uint64_t>(data.grouped.runs);
  choice.grouping.run_length = data.grouped.run_length > 0
                                   ? static_cast<uint64_t>(data.grouped.run_length)
                                   : automatic_run_length(choice.grouping.runs, stored, samples, groups);
  choice.runs_there = (samples + choice.grouping.run_length - 1) / choice.grouping.run_length;
  if (stored.compressed_bytes > 0) {
    // A run rarely begins and ends at the borders of chunks, so that it needs about one more.
    const uint64_t run = choice.grouping.run_length * sample_bytes(stored, samples) + stored.largest_chunk_bytes;
    choice.mixed_bytes = std::min(choice.grouping.runs * run, stored.compressed_bytes);
  }
  return choice;
}

std::string order_line(const DataSection& data, const OrderChoice& choice, const StoredLayout& stored) {
  const bool grouped = choice.shuffle == Shuffle::grouped;
  const bool length_decided = grouped && data.grouped.run_length == 0;
  if (data.shuffle != "auto" && !length_decided) return "";
  std::string line = "data.shuffle is \"" + choice.name + "\"";
  if (grouped) line += ", data.grouped " + knobs(choice.grouping);
  if (data.shuffle != "auto") return line;
  if (stored.datasets == 0) return line + ": the source reads no HDF5 dataset through the host";
  return line + (grouped ? ": most of the data lies in compressed chunks, which are decoded whole"
                         : ": most of the data does not lie in compressed chunks");
}

std::string order_warning(const DataSection& data, const OrderChoice& choice) {
  if (data.shuffle == "grouped" && choice.runs_there > 0 && choice.grouping.runs >= choice.runs_there) {
    return "data.grouped.runs = " + std::to_string(choice.grouping.runs) + " mixes all runs of " +
           std::to_string(choice.grouping.run_length) + " samples that are there (" +
           std::to_string(choice.runs_there) + ") at a time, which is a global shuffle: lower it" +
           (choice.grouping.run_length > 1 ? ", or data.grouped.run_length" : "");
  }
  if (choice.mixed_bytes <= static_cast<uint64_t>(data.chunk_cache_size_bytes)) return "";
  return "data.grouped mixes about " + size_text(static_cast<int64_t>(choice.mixed_bytes)) +
         " of decoded chunks at a time, more than data.chunk_cache_size = " + size_text(data.chunk_cache_size_bytes) +
         ": chunks are decoded several times an epoch; raise data.chunk_cache_size, or lower data.grouped.runs or "
         "data.grouped.run_length";
}

}  // namespace headroom
