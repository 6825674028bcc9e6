#include "arrays/plan_check.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "arrays/open_files.hpp"

namespace headroom {

namespace {

using Bytes = std::vector<std::byte>;

constexpr size_t most_chunks_compared = 64;  // when a user block leaves two places to choose from

// One record as libhdf5 reads it; nothing where it cannot.
std::optional<Bytes> by_library(hid_t dataset, const ArrayLayout& layout, const std::vector<hsize_t>& at) {
  const Handle space(H5Dget_space(dataset));
  const hsize_t one = 1;
  const Handle memory(H5Screate_simple(1, &one, nullptr));
  const std::vector<hsize_t> count(at.size(), 1);
  if (!at.empty() && H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, at.data(), nullptr, count.data(), nullptr) < 0)
    return std::nullopt;
  Bytes record(layout.record_bytes);
  if (H5Dread(dataset, layout.memory_type.get(), memory.get(), space.get(), H5P_DEFAULT, record.data()) < 0)
    return std::nullopt;
  return record;
}

std::optional<Bytes> by_offset(int file, uint64_t offset, uint64_t bytes) {
  Bytes record(bytes);
  try {
    read_exactly(file, offset, record.data(), bytes);
  } catch (const ReadFailure&) {
    return std::nullopt;
  }
  return record;
}

// The first record of a chunk that stands at `offset`. Throws WrongChunkSize.
std::optional<Bytes> by_chunk(int file, const ArrayPlan& plan, const StoredChunk& stored, uint64_t offset) {
  const auto bytes = by_offset(file, offset, stored.bytes);
  if (!bytes) return std::nullopt;
  Bytes chunk(plan.layout.chunk_bytes());
  try {
    decode_chunk(plan.filters, stored.filter_mask, *bytes, chunk);
  } catch (const WrongChunkSize&) {
    throw;
  } catch (const DamagedChunk&) {
    return std::nullopt;
  }
  chunk.resize(plan.layout.record_bytes);
  return chunk;
}

bool contiguous_agrees(hid_t dataset, int file, const ArrayPlan& plan) {
  std::vector<hsize_t> last;
  uint64_t elements = 1;
  for (const uint64_t extent : plan.layout.shape) {
    if (extent == 0) return true;
    last.push_back(extent - 1);
    elements *= extent;
  }
  const uint64_t bytes = plan.layout.record_bytes;
  const std::vector<hsize_t> first(last.size(), 0);
  return by_library(dataset, plan.layout, first) == by_offset(file, plan.offset, bytes) &&
         by_library(dataset, plan.layout, last) == by_offset(file, plan.offset + (elements - 1) * bytes, bytes);
}

std::vector<hsize_t> origin_of(size_t cell, const ArrayPlan& plan) {
  std::vector<hsize_t> origin(plan.grid.size());
  for (size_t axis = origin.size(); axis-- > 0; cell /= plan.grid[axis])
    origin[axis] = cell % plan.grid[axis] * plan.layout.chunk[axis];
  return origin;
}

// Chunks spread evenly over those that are stored.
std::vector<size_t> some_chunks(const ArrayPlan& plan, size_t most) {
  std::vector<size_t> stored, some;
  for (size_t cell = 0; cell < plan.chunks.size(); ++cell) {
    if (plan.chunks[cell].bytes > 0) stored.push_back(cell);
  }
  const size_t count = std::min(most, stored.size());
  for (size_t i = 0; i < count; ++i) some.push_back(stored[(2 * i + 1) * stored.size() / (2 * count)]);
  return some;
}

// A chunk that neither can read speaks for neither place: it is damaged.
bool chunks_agree(hid_t dataset, int file, uint64_t user_block_bytes, ArrayPlan& plan) {
  bool as_told = true, behind_user_block = user_block_bytes > 0, compared = false;
  for (const size_t cell : some_chunks(plan, user_block_bytes > 0 ? most_chunks_compared : 1)) {
    const StoredChunk& stored = plan.chunks[cell];
    const auto expected = by_library(dataset, plan.layout, origin_of(cell, plan));
    std::optional<Bytes> here, there;
    try {
      here = by_chunk(file, plan, stored, stored.offset);
      if (behind_user_block) there = by_chunk(file, plan, stored, stored.offset + user_block_bytes);
    } catch (const WrongChunkSize&) {
      if (user_block_bytes == 0) continue;  // its own reader will be told
    }
    if (!expected && !here && !there) continue;
    compared = true;
    as_told = as_told && expected == here;
    behind_user_block = behind_user_block && expected == there;
  }
  if (!compared) return user_block_bytes == 0;     // nothing stored, or nothing sound
  if (as_told == behind_user_block) return false;  // neither, or both: nothing to choose by
  if (behind_user_block) {
    for (StoredChunk& chunk : plan.chunks) chunk.offset += user_block_bytes;
  }
  return true;
}

}  // namespace

bool agrees_with_library(hid_t dataset, int file, uint64_t user_block_bytes, ArrayPlan& plan) {
  if (plan.lane == Lane::contiguous) return contiguous_agrees(dataset, file, plan);
  if (plan.lane == Lane::chunk_table) return chunks_agree(dataset, file, user_block_bytes, plan);
  return true;
}

}  // namespace headroom
