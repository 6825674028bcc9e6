// Which samples the sequences have: computed from the index, never stored.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "settings.hpp"

namespace hdf5_source {

// First rows a sample of a sequence may have.
struct Starts {
  uint64_t first = 0, last = 0;
};

// Rows a sample needs before and from its first row on.
class Reach {
 public:
  explicit Reach(const std::vector<FieldSettings>& fields);
  std::optional<Starts> starts(uint64_t rows) const;  // none where no sample fits
  uint64_t rows() const { return before_ + after_; }  // that a sequence must have

 private:
  uint64_t before_ = 0, after_ = 1;
};

struct Sample {
  uint32_t sequence = 0;
  uint64_t start = 0;  // its first row
  Starts allowed;      // of its sequence
};

// The samples of one split, numbered through its sequences in order.
class SampleTable {
 public:
  SampleTable(bool one_per_group, uint64_t stride) : one_per_group_(one_per_group), stride_(stride) {}
  uint64_t add(uint32_t sequence, const Starts& starts);  // how many it has
  uint64_t length() const { return length_; }
  Sample at(uint64_t index) const;  // O(log sequences); without a draw: the middle of a group, a window's own start

 private:
  struct Row {
    uint64_t first = 0;
    uint32_t sequence = 0;
    Starts starts;
  };
  bool one_per_group_;
  uint64_t stride_;
  uint64_t length_ = 0;
  std::vector<Row> rows_;
};

}  // namespace hdf5_source
