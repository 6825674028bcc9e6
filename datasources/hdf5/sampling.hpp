// Which samples the sequences have: computed from the index, never stored.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "settings.hpp"
#include "stretches.hpp"

namespace hdf5_source {

// First rows a sample of a stretch may have.
struct Starts {
  uint64_t first = 0, last = 0;
};

// Rows a sample needs before and from its first row on.
class Reach {
 public:
  explicit Reach(const std::vector<FieldSettings>& fields);
  std::optional<Starts> starts(uint64_t rows) const;  // none where no sample fits
  uint64_t rows() const { return before_ + after_; }  // that a stretch must have

 private:
  uint64_t before_ = 0, after_ = 1;
};

struct Sample {
  uint32_t sequence = 0;
  RowRange rows;       // that it stays in
  uint64_t start = 0;  // its first row, of the sequence
  Starts allowed;      // the same
};

// The samples of one split, numbered through its stretches in order.
class SampleTable {
 public:
  SampleTable(Sampling sampling, uint64_t stride) : sampling_(sampling), stride_(stride) {}
  uint64_t add(const Stretch& stretch, const Starts& starts);  // rows of the stretch; how many samples it has
  uint64_t length() const { return length_; }
  Sample at(uint64_t index) const;  // O(log sequences); without a draw: the middle of a group, a window's own start

 private:
  struct Row {
    uint64_t first = 0;
    uint32_t sequence = 0;
    RowRange rows;
    Starts starts;
  };
  Sampling sampling_;
  uint64_t stride_;
  uint64_t length_ = 0;
  std::vector<Row> rows_;
};

}  // namespace hdf5_source
