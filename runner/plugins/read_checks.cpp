#include "plugins/read_checks.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "error.hpp"

namespace headroom {

namespace {

using Bytes = std::vector<char>;

constexpr uint64_t most_samples = 4;
constexpr std::size_t guard_bytes = 64;
constexpr char guard = 0x5A;

[[noreturn]] void refuse_read(const std::string& sentence) { throw Error(Exit::plugin, "plugin", sentence); }

std::string of_field(const Field& field, uint64_t sample) {
  return "field '" + field.name + "' of sample " + std::to_string(sample);
}

// The slot of one field, aligned like a loader's, with guard bytes behind it.
class TrialSlot {
 public:
  TrialSlot(const Field& field, std::size_t samples, char fill)
      : bytes_(samples * static_cast<std::size_t>(field.bytes())),
        // aligned_alloc() takes whole multiples of the alignment.
        memory_(std::aligned_alloc(64, (bytes_ + guard_bytes + 63) / 64 * 64)),
        shape_{static_cast<int64_t>(samples)},
        dtype_(field.dtype) {
    if (!memory_)
      throw DoesNotApply{"no memory for " + std::to_string(bytes_) + " bytes of field '" + field.name + "'"};
    shape_.insert(shape_.end(), field.shape.begin(), field.shape.end());
    std::memset(memory_.get(), fill, bytes_);
    std::memset(data() + bytes_, guard, guard_bytes);
  }

  DLTensor tensor() {
    return {memory_.get(), {kDLCPU, 0}, static_cast<int32_t>(shape_.size()), dtype_, shape_.data(), nullptr, 0};
  }
  bool guard_is_whole() const {
    return std::all_of(data() + bytes_, data() + bytes_ + guard_bytes, [](char byte) { return byte == guard; });
  }
  Bytes content() const { return {data(), data() + bytes_}; }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  char* data() const { return static_cast<char*>(memory_.get()); }

  std::size_t bytes_;
  std::unique_ptr<void, Free> memory_;
  std::vector<int64_t> shape_;
  DLDataType dtype_;
};

// The bytes of each field. Slots begin as `fill`: what a plugin leaves unwritten is then equal in all reads.
std::vector<Bytes> read(const Source& source, std::span<const uint64_t> index, std::span<const uint64_t> key,
                        bool augment, char fill = 0) {
  std::vector<TrialSlot> slots;
  for (const Field& field : source.fields()) slots.emplace_back(field, index.size(), fill);
  std::vector<DLTensor> tensors;
  for (TrialSlot& slot : slots) tensors.push_back(slot.tensor());
  source.reader().read(0, index, key, augment, tensors);
  std::vector<Bytes> fields;
  for (std::size_t f = 0; f < slots.size(); ++f) {
    if (!slots[f].guard_is_whole()) {
      refuse_read("a read writes behind the slot of field '" + source.fields()[f].name +
                  "': it has the field's shape for each sample of the request, and no more");
    }
    fields.push_back(slots[f].content());
  }
  return fields;
}

// Spread over the first split, in descending order: a reader that assumes ascending indices shows it.
std::vector<uint64_t> samples_of(const Source& source) {
  const uint64_t length = source.length(0), count = std::min(most_samples, length);
  std::vector<uint64_t> index;
  for (uint64_t i = 0; i < count; ++i) index.push_back((count - 1 - i) * (length / count));
  return index;
}

std::vector<uint64_t> keys_of(std::span<const uint64_t> index) {
  std::vector<uint64_t> keys;
  // Any keys will do, as long as a sample has the same one alone and among others.
  for (const uint64_t i : index) keys.push_back(1000 + i);
  return keys;
}

}  // namespace

void require_filled_slots(const Source& source) {
  const auto index = samples_of(source), key = keys_of(index);
  if (index.empty()) throw DoesNotApply{"the first split has no sample"};
  // A byte that is not written differs between a slot of zeros and one of ones.
  const auto zeros = read(source, index, key, /*augment=*/false, 0);
  const auto ones = read(source, index, key, /*augment=*/false, static_cast<char>(0xFF));
  for (std::size_t f = 0; f < zeros.size(); ++f) {
    const auto [first, other] = std::ranges::mismatch(zeros[f], ones[f]);
    if (first == zeros[f].end()) continue;
    const auto sample =
        static_cast<std::size_t>(first - zeros[f].begin()) / static_cast<std::size_t>(source.fields()[f].bytes());
    refuse_read(of_field(source.fields()[f], index[sample]) +
                " is not written whole, so a model would see what the slot held before: a read writes every element, "
                "and what it does not draw from the key is the same each time");
  }
}

void require_pure_reads(const Source& source) {
  const auto index = samples_of(source), key = keys_of(index);
  if (index.size() < 2) throw DoesNotApply{"the first split has fewer than two samples"};
  for (const bool augment : {false, true}) {
    const auto together = read(source, index, key, augment);
    for (std::size_t i = 0; i < index.size(); ++i) {
      const auto alone = read(source, std::span(index).subspan(i, 1), std::span(key).subspan(i, 1), augment);
      for (std::size_t f = 0; f < alone.size(); ++f) {
        // Samples lie behind one another in a slot, so sample i begins after i whole ones.
        if (std::memcmp(alone[f].data(), together[f].data() + i * alone[f].size(), alone[f].size()) == 0) continue;
        refuse_read(of_field(source.fields()[f], index[i]) +
                    " changes with its batch: a read must be a pure function of content, index and key");
      }
    }
  }
}

void require_reads_without_keys(const Source& source) {
  if (source.augments()) throw DoesNotApply{"it does not say that its reads do not depend on keys"};
  for (uint64_t sample = 0; sample < std::min(most_samples, source.length(0)); ++sample) {
    const std::vector<uint64_t> index{sample}, key{1000 + sample}, other{77 + sample};
    // With one key, with another, and without augmentation: all three must be equal.
    const auto first = read(source, index, key, true), second = read(source, index, other, true),
               plain = read(source, index, key, false);
    for (std::size_t f = 0; f < first.size(); ++f) {
      if (first[f] == second[f] && first[f] == plain[f]) continue;
      refuse_read(
          of_field(source.fields()[f], sample) +
          " changes with its key, and the source says HR_SOURCE_NO_AUGMENT: the host would keep one of its versions");
    }
  }
}

}  // namespace headroom
