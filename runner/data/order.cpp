#include "data/order.hpp"

#include <algorithm>
#include <bit>

#include "arrays/array_session.hpp"
#include "config/experiment.hpp"
#include "headroom/random.h"
#include "memory/readable.hpp"

namespace headroom {

namespace {

// With fewer rounds, or domains below 256, some permutations of 3 to 5 samples come visibly more often (measured over
// many epochs).
constexpr uint64_t rounds = 6;
constexpr int fewest_half_bits = 4;

constexpr uint64_t order_site = 0x6F72646572;  // "order": differs from every site of a sample's own draws

// The permutation number `tweak` of [0, length) under four keys.
class Feistel {
 public:
  Feistel(const uint64_t (&keys)[4], uint64_t tweak, uint64_t length)
      : keys_(keys), site_(tweak * rounds), length_(length) {
    // Both halves have as many bits: the domain is the next even power of two.
    half_bits_ = length < 2 ? 0 : std::max(fewest_half_bits, static_cast<int>(std::bit_width(length - 1) + 1) / 2);
    mask_ = (uint64_t{1} << half_bits_) - 1;
  }

  uint64_t at(uint64_t position) const {
    if (length_ < 2) return position;
    uint64_t index = position;
    do {
      uint64_t left = index >> half_bits_, right = index & mask_;
      for (uint64_t round = 0; round < rounds; ++round) {
        const uint64_t mixed = left ^ mix(round, right);
        left = right;
        right = mixed;
      }
      index = left << half_bits_ | right;
    } while (index >= length_);
    return index;
  }

  // The inverse of at(): the rounds backwards.
  uint64_t position_of(uint64_t index) const {
    if (length_ < 2) return index;
    uint64_t position = index;
    do {
      uint64_t left = position >> half_bits_, right = position & mask_;
      for (uint64_t round = rounds; round-- > 0;) {
        const uint64_t mixed = right ^ mix(round, left);
        right = left;
        left = mixed;
      }
      position = left << half_bits_ | right;
    } while (position >= length_);
    return position;
  }

 private:
  uint64_t mix(uint64_t round, uint64_t half) const {
    return hr_philox64(keys_[round % 4], site_ + round, half) & mask_;
  }

  const uint64_t (&keys_)[4];
  uint64_t site_, length_, mask_ = 0;
  int half_bits_ = 0;
};

}  // namespace

Order::Order(Shuffle shuffle, uint64_t length, uint64_t seed, uint64_t epoch, Grouping grouping)
    : shuffle_(shuffle), length_(length), keys_{}, grouping_(grouping) {
  for (uint64_t i = 0; i < 4; ++i) keys_[i] = hr_philox64(hr_philox64(seed, order_site, epoch), order_site, i);
  if (shuffle != Shuffle::grouped || length == 0) return;
  grouping_.run_length = std::min(grouping.run_length, length);
  runs_ = (length - 1) / grouping_.run_length + 1;
  grouping_.runs = std::min(grouping.runs, runs_);
  missing_ = (grouping_.run_length - length % grouping_.run_length) % grouping_.run_length;
  short_place_ = Feistel(keys_, 0, runs_).position_of(runs_ - 1);
}

uint64_t Order::at(uint64_t position) const {
  switch (shuffle_) {
    case Shuffle::sequential:
      return position;
    case Shuffle::global:
      return Feistel(keys_, 0, length_).at(position);
    case Shuffle::grouped:
      return grouped(position);
  }
  return position;
}

// Positions are computed as if all runs were equally long, so those after the group with the short run move up by what
// is missing there.
uint64_t Order::grouped(uint64_t position) const {
  const uint64_t full = grouping_.runs * grouping_.run_length, short_group = short_place_ / grouping_.runs;
  if (position >= (short_group + 1) * full - missing_) position += missing_;
  const uint64_t group = position / full, first_run = group * grouping_.runs;
  const uint64_t runs = std::min(grouping_.runs, runs_ - first_run);
  const uint64_t samples = runs * grouping_.run_length - (group == short_group ? missing_ : 0);

  const uint64_t mixed = Feistel(keys_, group + 1, samples).at(position % full);
  uint64_t place = first_run + mixed / grouping_.run_length;
  if (group == short_group) {  // the short run counts as the group's last
    const uint64_t last = first_run + runs - 1;
    place = place == last ? short_place_ : place == short_place_ ? last : place;
  }
  return Feistel(keys_, 0, runs_).at(place) * grouping_.run_length + mixed % grouping_.run_length;
}

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
