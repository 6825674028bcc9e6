// Which windows a recording has: the arithmetic of emg2pose's reference, sample for sample. A window is computed from
// its index and never stored; all of them together cost one Row for each block of valid samples.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace emg_hdf5 {

struct WindowShape {
  uint64_t size = 500;
  uint64_t stride = 1;
  uint64_t left = 0, right = 0;  // context read around the window
  uint64_t samples() const { return left + size + right; }
};

// Records [begin, end) in which windows lie.
struct Block {
  uint64_t begin = 0, end = 0;
  bool operator==(const Block&) const = default;
};

// Windows whose first record is begin, begin + stride, ...; 0 where none fits.
uint64_t window_count(const Block& block, const WindowShape& shape);

// Finds the blocks of a recording from the validity of its samples, fed in any portions. A run of valid samples with
// last sample t1 gives the block [t0, t1 - 1), as the reference has it: the last two samples are in no window.
class BlockScanner {
 public:
  explicit BlockScanner(uint64_t window_size) : window_size_(window_size) {}
  void add(std::span<const uint8_t> valid);
  std::vector<Block> finish();

 private:
  void end_run();
  uint64_t window_size_;
  uint64_t position_ = 0, run_begin_ = 0;
  bool in_run_ = false;
  std::vector<Block> blocks_;
};

struct Window {
  uint32_t recording = 0;
  uint64_t start = 0;  // its first record, context aside
  uint64_t block_end = 0;
  // Records from `start` on that may be skipped when it is jittered: start + jitter stays inside the block.
  uint64_t jitter_bound(const WindowShape& shape) const;
};

// The windows of one split, numbered through its recordings in order.
class WindowTable {
 public:
  explicit WindowTable(const WindowShape& shape) : shape_(shape) {}
  uint64_t add(uint32_t recording, const Block& block);  // how many windows it has
  uint64_t length() const { return length_; }
  Window at(uint64_t index) const;  // O(log blocks); index < length()

 private:
  struct Row {
    uint64_t first = 0;
    Block block;
    uint32_t recording = 0;
  };
  WindowShape shape_;
  std::vector<Row> rows_;
  uint64_t length_ = 0;
};

// The records [begin, end) a window starting at `start` reads, and the position in its slot where `begin` goes: context
// beyond the recording's ends does not exist.
struct Slice {
  uint64_t begin = 0, end = 0, position = 0;
};
Slice slice_of(uint64_t start, const WindowShape& shape, uint64_t records);

}  // namespace emg_hdf5
