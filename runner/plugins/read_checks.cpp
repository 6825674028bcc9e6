#include "plugins/read_checks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "error.hpp"

namespace headroom {

namespace {

using Bytes = std::vector<char>;

constexpr uint64_t most_samples = 4;
constexpr int64_t most_bytes = int64_t{64} << 20;  // of one request, where two samples are no more
constexpr std::size_t guard_bytes = 64;            // keeps the slot between two guards aligned like a loader's
constexpr char guard = 0x5A;
constexpr std::chrono::milliseconds time_on_threads{100};  // of each split: long for memory, and a read each for disks

[[noreturn]] void refuse_read(const std::string& sentence) { throw Error(Exit::plugin, "plugin", sentence); }

std::string of_field(const Source& source, std::size_t field, uint32_t split, uint64_t sample) {
  std::string text = "field '" + source.fields()[field].name + "' of sample " + std::to_string(sample);
  if (source.splits().size() > 1) text += " of split '" + source.splits()[split] + "'";
  return text;
}

// The slot of one field, with guard bytes before and behind it. Without memory: the field is not wanted.
class TrialSlot {
 public:
  TrialSlot(const Field& field, std::size_t samples, char fill, bool wanted)
      : bytes_(wanted ? samples * static_cast<std::size_t>(field.bytes()) : 0),
        shape_{static_cast<int64_t>(samples)},
        dtype_(field.dtype) {
    shape_.insert(shape_.end(), field.shape.begin(), field.shape.end());
    if (!wanted) return;
    // aligned_alloc() takes whole multiples of the alignment.
    memory_.reset(std::aligned_alloc(64, (bytes_ + 2 * guard_bytes + 63) / 64 * 64));
    if (!memory_)
      throw DoesNotApply{"no memory for " + std::to_string(bytes_) + " bytes of field '" + field.name + "'"};
    std::memset(data() - guard_bytes, guard, guard_bytes);
    std::memset(data(), fill, bytes_);
    std::memset(data() + bytes_, guard, guard_bytes);
  }

  DLTensor tensor() {
    void* const slot = memory_ ? data() : nullptr;
    return {slot, {kDLCPU, 0}, static_cast<int32_t>(shape_.size()), dtype_, shape_.data(), nullptr, 0};
  }
  bool guards_are_whole() const {
    const auto is_whole = [](const char* first) {
      return std::all_of(first, first + guard_bytes, [](char byte) { return byte == guard; });
    };
    return !memory_ || (is_whole(data() - guard_bytes) && is_whole(data() + bytes_));
  }
  Bytes content() const { return memory_ ? Bytes(data(), data() + bytes_) : Bytes(); }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  char* data() const { return static_cast<char*>(memory_.get()) + guard_bytes; }

  std::size_t bytes_;
  std::unique_ptr<void, Free> memory_;
  std::vector<int64_t> shape_;
  DLDataType dtype_;
};

struct TrialRead {
  uint32_t split = 0;
  std::span<const uint64_t> index, key;
  bool augment = false;
  char fill = 0;                 // slots begin so: what a plugin leaves unwritten is then equal in all reads
  bool normalized_only = false;  // the other fields are not wanted, as where the host measures statistics
};

// The bytes of each field; none of one that is not wanted.
std::vector<Bytes> read(const Source& source, const TrialRead& wanted) {
  std::vector<TrialSlot> slots;
  for (const Field& field : source.fields())
    slots.emplace_back(field, wanted.index.size(), wanted.fill, !wanted.normalized_only || field.normalize);
  std::vector<DLTensor> tensors;
  for (TrialSlot& slot : slots) tensors.push_back(slot.tensor());
  source.reader().read(wanted.split, wanted.index, wanted.key, wanted.augment, tensors);
  std::vector<Bytes> fields;
  for (std::size_t f = 0; f < slots.size(); ++f) {
    if (!slots[f].guards_are_whole()) {
      refuse_read("a read writes beside the slot of field '" + source.fields()[f].name +
                  "': it has the field's shape for each sample of the request, and no more");
    }
    fields.push_back(slots[f].content());
  }
  return fields;
}

// Samples of one split, spread from its first to its last, in descending order: a reader that assumes ascending indices
// shows it.
struct TrialSamples {
  uint32_t split;
  std::vector<uint64_t> index, key;
};

TrialSamples samples_of(const Source& source, uint32_t split) {
  int64_t sample_bytes = 1;
  for (const Field& field : source.fields()) sample_bytes += field.bytes();
  const auto fitting = static_cast<uint64_t>(std::clamp<int64_t>(most_bytes / sample_bytes, 2, most_samples));
  const uint64_t length = source.length(split), count = std::min(fitting, length);
  TrialSamples samples{split, {}, {}};
  for (uint64_t i = 0; i < count; ++i) {
    // The last one is asked for by its number: the distance is rounded down.
    samples.index.push_back(i == 0 ? length - 1 : (count - 1 - i) * ((length - 1) / (count - 1)));
    // Any keys will do, as long as a sample has the same one alone and among others.
    samples.key.push_back(1000 + samples.index.back());
  }
  return samples;
}

// Of every split that has any.
std::vector<TrialSamples> samples_of(const Source& source) {
  std::vector<TrialSamples> all;
  for (uint32_t split = 0; split < source.splits().size(); ++split) {
    if (source.length(split) > 0) all.push_back(samples_of(source, split));
  }
  if (all.empty()) throw DoesNotApply{"it has no sample"};
  return all;
}

void require_filled_slots(const Source& source, const TrialSamples& samples) {
  // A byte that is not written differs between a slot of zeros and one of ones.
  const auto zeros = read(source, {.split = samples.split, .index = samples.index, .key = samples.key, .fill = 0});
  const auto ones = read(
      source, {.split = samples.split, .index = samples.index, .key = samples.key, .fill = static_cast<char>(0xFF)});
  for (std::size_t f = 0; f < zeros.size(); ++f) {
    const auto [first, other] = std::ranges::mismatch(zeros[f], ones[f]);
    if (first == zeros[f].end()) continue;
    const auto sample =
        static_cast<std::size_t>(first - zeros[f].begin()) / static_cast<std::size_t>(source.fields()[f].bytes());
    refuse_read(of_field(source, f, samples.split, samples.index[sample]) +
                " is not written whole, so a model would see what the slot held before: a read writes every element, "
                "and what it does not draw from the key is the same each time");
  }
}

void require_pure_reads(const Source& source, const TrialSamples& samples, bool augment) {
  const std::span index(samples.index), key(samples.key);
  const auto together = read(source, {.split = samples.split, .index = index, .key = key, .augment = augment});
  for (std::size_t i = 0; i < index.size(); ++i) {
    const auto alone = read(
        source, {.split = samples.split, .index = index.subspan(i, 1), .key = key.subspan(i, 1), .augment = augment});
    for (std::size_t f = 0; f < alone.size(); ++f) {
      // Samples lie behind one another in a slot, so sample i begins after i whole ones.
      if (std::memcmp(alone[f].data(), together[f].data() + i * alone[f].size(), alone[f].size()) == 0) continue;
      refuse_read(of_field(source, f, samples.split, index[i]) +
                  " changes with its batch: a read must be a pure function of content, index and key");
    }
  }
}

void require_plain_reads(const Source& source, const TrialSamples& samples) {
  for (const uint64_t sample : samples.index) {
    const std::vector<uint64_t> index{sample}, key{1000 + sample}, other{77 + sample};
    const auto first = read(source, {.split = samples.split, .index = index, .key = key});
    const auto second = read(source, {.split = samples.split, .index = index, .key = other});
    for (std::size_t f = 0; f < first.size(); ++f) {
      if (first[f] == second[f]) continue;
      refuse_read(of_field(source, f, samples.split, sample) +
                  " changes with its key where it is not to be augmented, so no evaluation could be compared with "
                  "another: a read draws only if request.augment() (HR_READ_AUGMENT) says so");
    }
  }
}

// Reads one sample after the other, as the loader's threads do, until `ends`. "", or what differed.
std::string read_beside_others(const Source& source, const TrialSamples& samples,
                               std::span<const std::vector<Bytes>> alone, std::size_t first,
                               std::chrono::steady_clock::time_point ends) {
  std::size_t i = first;
  do {
    const auto found = read(source, {.split = samples.split,
                                     .index = std::span(samples.index).subspan(i, 1),
                                     .key = std::span(samples.key).subspan(i, 1)});
    for (std::size_t f = 0; f < found.size(); ++f) {
      if (found[f] != alone[i][f]) return of_field(source, f, samples.split, samples.index[i]);
    }
    i = (i + 1) % samples.index.size();
  } while (std::chrono::steady_clock::now() < ends);
  return "";
}

void require_reads_on_threads(const Source& source, const TrialSamples& samples) {
  std::vector<std::vector<Bytes>> alone;
  for (std::size_t i = 0; i < samples.index.size(); ++i) {
    alone.push_back(read(source, {.split = samples.split,
                                  .index = std::span(samples.index).subspan(i, 1),
                                  .key = std::span(samples.key).subspan(i, 1)}));
  }
  const auto ends = std::chrono::steady_clock::now() + time_on_threads;
  std::vector<std::future<std::string>> threads;
  // Each begins with another sample: of the same ones, what two threads write over each other would be equal.
  for (std::size_t i = 0; i < samples.index.size(); ++i)
    threads.push_back(
        std::async(std::launch::async, [&, i] { return read_beside_others(source, samples, alone, i, ends); }));
  for (auto& thread : threads) thread.wait();
  for (auto& thread : threads) {
    const std::string changed = thread.get();
    if (changed.empty()) continue;
    refuse_read(changed +
                " changes while other threads read: an open source is shared by all of them and never written to; what "
                "a read needs for itself are variables of its own, or members of a reader (make_reader())");
  }
}

void require_reads_without_keys(const Source& source, const TrialSamples& samples) {
  for (const uint64_t sample : samples.index) {
    const std::vector<uint64_t> index{sample}, key{1000 + sample}, other{77 + sample};
    // With one key, with another, and without augmentation: all three must be equal.
    const auto first = read(source, {.split = samples.split, .index = index, .key = key, .augment = true});
    const auto second = read(source, {.split = samples.split, .index = index, .key = other, .augment = true});
    const auto plain = read(source, {.split = samples.split, .index = index, .key = key});
    for (std::size_t f = 0; f < first.size(); ++f) {
      if (first[f] == second[f] && first[f] == plain[f]) continue;
      refuse_read(
          of_field(source, f, samples.split, sample) +
          " changes with its key, and the source says HR_SOURCE_NO_AUGMENT: the host would keep one of its versions");
    }
  }
}

}  // namespace

void require_filled_slots(const Source& source) {
  for (const TrialSamples& samples : samples_of(source)) require_filled_slots(source, samples);
}

void require_pure_reads(const Source& source) {
  bool has_two = false;
  for (const TrialSamples& samples : samples_of(source)) {
    if (samples.index.size() < 2) continue;
    has_two = true;
    for (const bool augment : {false, true}) require_pure_reads(source, samples, augment);
  }
  if (!has_two) throw DoesNotApply{"no split has two samples"};
}

void require_plain_reads(const Source& source) {
  for (const TrialSamples& samples : samples_of(source)) require_plain_reads(source, samples);
}

void require_reads_on_threads(const Source& source) {
  bool has_two = false;
  for (const TrialSamples& samples : samples_of(source)) {
    if (samples.index.size() < 2) continue;
    has_two = true;
    require_reads_on_threads(source, samples);
  }
  if (!has_two) throw DoesNotApply{"no split has two samples"};
}

void require_reads_of_single_fields(const Source& source) {
  const auto is_normalized = [](const Field& field) { return field.normalize; };
  if (std::ranges::none_of(source.fields(), is_normalized) || std::ranges::all_of(source.fields(), is_normalized))
    throw DoesNotApply{"its fields are always wanted together"};
  for (const TrialSamples& samples : samples_of(source)) {
    const auto all = read(source, {.split = samples.split, .index = samples.index, .key = samples.key});
    const auto some =
        read(source, {.split = samples.split, .index = samples.index, .key = samples.key, .normalized_only = true});
    for (std::size_t f = 0; f < all.size(); ++f) {
      if (!is_normalized(source.fields()[f]) || all[f] == some[f]) continue;
      refuse_read("field '" + source.fields()[f].name +
                  "' changes when others are not wanted (slots without memory), so its statistics would be those of "
                  "other values: a read fills each wanted field as if all were");
    }
  }
}

void require_reads_without_keys(const Source& source) {
  if (source.augments()) throw DoesNotApply{"it does not say that its reads do not depend on keys"};
  for (const TrialSamples& samples : samples_of(source)) require_reads_without_keys(source, samples);
}

void check_reads(CheckList& list, const std::function<const Source&()>& source) {
  using Require = void (*)(const Source&);
  const std::pair<const char*, Require> checks[] = {
      {"datasource: fills its slots and nothing beside them", require_filled_slots},
      {"datasource: a sample is the same alone and among others", require_pure_reads},
      {"datasource: draws nothing where it is not to augment", require_plain_reads},
      {"datasource: a sample is the same while other threads read", require_reads_on_threads},
      {"datasource: a field is the same whether others are wanted", require_reads_of_single_fields},
      {"datasource: keys change nothing where it says so", require_reads_without_keys}};
  for (const auto& [name, require] : checks) {
    list.check(name, [&, require = require] {
      try {
        require(source());
      } catch (const Error& problem) {
        // Data that cannot be read is no mistake of the plugin.
        if (problem.exit_code() != Exit::data) throw;
        throw DoesNotApply{problem.what()};
      }
    });
  }
}

}  // namespace headroom
