// A small LRU cache of open files, for a reader.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace headroom::sdk {

// At most 64 values by number; the least recently used one makes room for a new one. For one thread.
template <class Value>
class KeptOpen {
 public:
  // The value of `number`; open() makes it if it is not kept. Valid until the next call with another number.
  template <class Open>
  const Value& get(uint64_t number, Open&& open) {
    ++uses_;
    const auto kept = std::ranges::find(entries_, number, &Entry::number);
    if (kept != entries_.end()) {
      kept->last_use = uses_;
      return kept->value;
    }
    Entry opened{number, uses_, open()};
    if (entries_.size() < most_open) return entries_.emplace_back(std::move(opened)).value;
    Entry& oldest = *std::ranges::min_element(entries_, {}, &Entry::last_use);
    oldest = std::move(opened);
    return oldest.value;
  }

 private:
  struct Entry {
    uint64_t number = 0, last_use = 0;
    Value value;
  };
  static constexpr std::size_t most_open = 64;
  uint64_t uses_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace headroom::sdk
