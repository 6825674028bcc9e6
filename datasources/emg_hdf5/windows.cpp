#include "windows.hpp"

#include <algorithm>

namespace emg_hdf5 {

uint64_t window_count(const Block& block, const WindowShape& shape) {
  if (block.end < block.begin + shape.size) return 0;
  return (block.end - block.begin - shape.size) / shape.stride + 1;
}

void BlockScanner::add(std::span<const uint8_t> valid) {
  for (const uint8_t sample : valid) {
    if (sample != 0 && !in_run_) run_begin_ = position_;
    if (sample == 0 && in_run_) end_run();
    in_run_ = sample != 0;
    ++position_;
  }
}

void BlockScanner::end_run() {
  const uint64_t last = position_ - 1;
  if (last - run_begin_ >= window_size_) blocks_.push_back({run_begin_, last - 1});
}

std::vector<Block> BlockScanner::finish() {
  if (in_run_) end_run();
  in_run_ = false;
  return std::move(blocks_);
}

uint64_t Window::jitter_bound(const WindowShape& shape) const {
  return std::min(shape.stride, block_end - start - shape.size);
}

uint64_t WindowTable::add(uint32_t recording, const Block& block) {
  const uint64_t count = window_count(block, shape_);
  if (count == 0) return 0;
  rows_.push_back({length_, block, recording});
  length_ += count;
  return count;
}

Window WindowTable::at(uint64_t index) const {
  const auto next = std::ranges::upper_bound(rows_, index, {}, &Row::first);
  const Row& row = *std::prev(next);
  return {row.recording, row.block.begin + (index - row.first) * shape_.stride, row.block.end};
}

Slice slice_of(uint64_t start, const WindowShape& shape, uint64_t records) {
  const uint64_t before = std::min(start, shape.left);
  return {start - before, std::min(start + shape.size + shape.right, records), shape.left - before};
}

}  // namespace emg_hdf5
