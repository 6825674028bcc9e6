#include "data/class_counts.hpp"

#include <algorithm>
#include <cstring>

#include "data/slots.hpp"
#include "headroom/random.h"

namespace headroom {

namespace {

constexpr int64_t label_block_bytes = 1 << 20, most_block_samples = 1024;

// Adds the values of a block, all of type T.
template <class T>
void add_values(const void* data, uint64_t elements, ClassCounts& counts) {
  const auto* bytes = static_cast<const std::byte*>(data);
  for (uint64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    // A negative one becomes larger than any class.
    const auto place = static_cast<uint64_t>(value);
    if (place < counts.counts.size()) {
      ++counts.counts[place];
    } else {
      ++counts.others;
    }
  }
}

using AddValues = void (*)(const void*, uint64_t, ClassCounts&);

AddValues adder_of(DLDataType dtype) {
  const bool is_signed = dtype.code == kDLInt;
  if (dtype.lanes != 1 || (!is_signed && dtype.code != kDLUInt && dtype.code != kDLBool)) return nullptr;
  switch (dtype.bits) {
    case 8:
      return is_signed ? &add_values<int8_t> : &add_values<uint8_t>;
    case 16:
      return is_signed ? &add_values<int16_t> : &add_values<uint16_t>;
    case 32:
      return is_signed ? &add_values<int32_t> : &add_values<uint32_t>;
    case 64:
      return is_signed ? &add_values<int64_t> : &add_values<uint64_t>;
    default:
      return nullptr;
  }
}

class ClassCounting {
 public:
  ClassCounting(const Source& source, const Split& split, uint32_t field, int64_t classes)
      : split_(split), field_(field), reader_(source.reader()) {
    const Field& labels = source.fields().at(field);
    add_ = adder_of(labels.dtype);
    if (add_ == nullptr) {
      throw Error(Exit::plugin, source.id(),
                  "the model takes field '" + labels.name + "' for classes; it is " + dtype_name(labels.dtype) +
                      ", and classes are integers");
    }
    elements_ = static_cast<uint64_t>(labels.elements());
    block_ = std::clamp<int64_t>(label_block_bytes / std::max<int64_t>(labels.bytes(), 1), 1, most_block_samples);
    std::vector<bool> wanted(source.fields().size(), false);
    wanted[field] = true;
    // Other fields get no memory, which tells the source that they are not wanted.
    slot_ = std::make_unique<Slot>(source.fields(), block_, wanted);
    counts_.counts.resize(static_cast<size_t>(classes));
  }

  size_t block() const { return static_cast<size_t>(block_); }

  void add(std::span<const uint64_t> index) {
    try {
      read(index);
    } catch (const BadSample&) {
      // Nothing of the block was counted.
      if (index.size() == 1) {
        ++counts_.unreadable;
        return;
      }
      for (const uint64_t& sample : index) add({&sample, 1});
    }
  }

  ClassCounts take() { return std::move(counts_); }

 private:
  void read(std::span<const uint64_t> index) {
    std::vector<uint64_t> key;
    for (const uint64_t sample : index) key.push_back(hr_sample_key(0, split_.source_split(), 0, sample));
    const auto tensors = slot_->tensors(0, static_cast<int64_t>(index.size()));
    reader_.read(split_.source_split(), index, key, /*augment=*/false, tensors);
    add_(tensors[field_].data, index.size() * elements_, counts_);
    counts_.samples += index.size();
  }

  const Split& split_;
  uint32_t field_;
  Reader reader_;
  AddValues add_ = nullptr;
  uint64_t elements_ = 1;
  int64_t block_ = 1;
  std::unique_ptr<Slot> slot_;
  ClassCounts counts_;
};

}  // namespace

ClassCounts count_classes(const Source& source, const Split& split, uint32_t field, int64_t classes,
                          uint64_t most_samples) {
  ClassCounting counting(source, split, field, classes);
  const uint64_t length = split.length(), chosen = std::min(length, most_samples);
  // Evenly spaced: the i-th of `chosen` is at i * length / chosen, without a product that overflows.
  const uint64_t stride = chosen > 0 ? length / chosen : 0, rest = chosen > 0 ? length % chosen : 0;
  std::vector<uint64_t> index;
  for (uint64_t i = 0; i < chosen; ++i) {
    index.push_back(split.source_index(i * stride + i * rest / chosen));
    if (index.size() < counting.block() && i + 1 < chosen) continue;
    counting.add(index);
    index.clear();
  }
  ClassCounts counts = counting.take();
  counts.whole = chosen == length;
  return counts;
}

}  // namespace headroom
