#include "arrays/hdf5_plan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <optional>

#include "arrays/hdf5_object.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

namespace {

// The functions plan_*() set the lane, or return why only libhdf5 can read the dataset.
// Contiguous: all bytes lie in one run, which ends inside of the file.
std::string plan_contiguous(hid_t dataset, hid_t creation, ArrayPlan& plan) {
  H5D_space_status_t allocated = H5D_SPACE_STATUS_ERROR;
  if (H5Pget_external_count(creation) != 0) return "it is stored in external files";
  // An offset is told even where nothing is stored: with a user block of 512 bytes it is 511.
  if (H5Dget_space_status(dataset, &allocated) < 0 || allocated != H5D_SPACE_STATUS_ALLOCATED)
    return "nothing is stored yet";
  const haddr_t offset = H5Dget_offset(dataset);
  uint64_t bytes = plan.layout.element_bytes, end = 0;
  for (const uint64_t extent : plan.layout.shape) bytes *= extent;  // read_layout() has seen that it fits
  if (offset == HADDR_UNDEF || __builtin_add_overflow(offset, bytes, &end) || end > plan.file.size_bytes)
    return "libhdf5 does not tell where it stands";
  plan.lane = Lane::contiguous;
  plan.offset = offset;
  return "";
}

// False for a filter that only libhdf5 undoes.
bool take_filters(hid_t creation, ArrayPlan& plan) {
  const int count = H5Pget_nfilters(creation);
  for (int i = 0; i < count; ++i) {
    unsigned flags = 0, config = 0, values[8] = {};
    size_t value_count = 8;
    const H5Z_filter_t id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &value_count, values, 0, nullptr, &config);
    const auto kind = filter_kind(id);
    if (!kind || (kind == FilterKind::shuffle && value_count < 1)) return false;
    plan.filters.push_back({*kind, kind == FilterKind::shuffle ? values[0] : 0});
  }
  return count >= 0 && decodable(plan.filters);
}

// What chunks that were never written read as; zeros where nobody says.
void take_fill(hid_t dataset, hid_t creation, ArrayPlan& plan) {
  plan.fill.assign(plan.layout.record_bytes, std::byte{0});
  H5D_fill_value_t defined = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t time = H5D_FILL_TIME_ERROR;
  if (H5Pfill_value_defined(creation, &defined) < 0 || defined != H5D_FILL_VALUE_USER_DEFINED) return;
  // With H5D_FILL_TIME_NEVER libhdf5 skips missing chunks and leaves the reader's memory as it is. Zeros are what
  // Hdf5Array::read_block() has there.
  if (H5Pget_fill_time(creation, &time) < 0 || time == H5D_FILL_TIME_NEVER) return;
  // In the file's own type, as chunks hold it: whoever copies records out of chunks converts this one the same way.
  const Handle type(H5Dget_type(dataset));
  if (H5Pget_fill_value(creation, type.get(), plan.fill.data()) < 0)
    plan.fill.assign(plan.layout.record_bytes, std::byte{0});
}

std::string plan_chunked(hid_t dataset, hid_t creation, bool may_print, ArrayPlan& plan) {
  unsigned options = 0;
  if (!take_filters(creation, plan)) return "it has filters that only libhdf5 undoes";
  // The one option, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS, leaves chunks at the edge unfiltered.
  if (H5Pget_chunk_opts(creation, &options) < 0 || options != 0) return "its chunks at the edge are not filtered";
  if (plan.layout.chunk.size() != plan.layout.shape.size()) return "its chunks have other axes than itself";
  uint64_t cells = 1;
  for (size_t axis = 0; axis < plan.layout.shape.size(); ++axis) {
    const uint64_t extent = plan.layout.shape[axis], chunk = plan.layout.chunk[axis];
    plan.grid.push_back(extent / chunk + (extent % chunk != 0 ? 1 : 0));
    if (__builtin_mul_overflow(cells, plan.grid.back(), &cells)) return "its chunks cannot be counted";
  }
  take_fill(dataset, creation, plan);
  // What is left where no table can be made.
  plan.lane = Lane::chunk_calls;
  if (cells > most_planned_chunks) return "";
  if (auto chunks = list_chunks(dataset, plan.layout, plan.grid, may_print)) {
    plan.chunks = std::move(*chunks);
    plan.lane = Lane::chunk_table;
  }
  return "";
}

// An external link may lead into another file, whose offsets mean nothing here.
bool same_file(hid_t file, hid_t dataset) {
  H5O_info_t root, here;
  return H5Oget_info_by_name2(file, "/", &root, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
         H5Oget_info2(dataset, &here, H5O_INFO_BASIC) >= 0 && root.fileno == here.fileno;
}

// Sets the lane; returns why it is the library's, or "".
std::string choose_lane(hid_t file, hid_t dataset, bool may_print, ArrayPlan& plan) {
  const Handle creation(H5Dget_create_plist(dataset));
  if (!plan.layout.as_in_file) return "its records hold strings, lists or references";
  if (!same_file(file, dataset)) return "it stands in another file";
  switch (H5Pget_layout(creation.get())) {
    case H5D_CONTIGUOUS:
      return plan_contiguous(dataset, creation.get(), plan);
    case H5D_CHUNKED:
      return plan_chunked(dataset, creation.get(), may_print, plan);
    case H5D_COMPACT:
      return "it is stored in its object header";
    case H5D_VIRTUAL:
      return "it is put together from other datasets";
    default:
      return "its layout is unknown";
  }
}

uint64_t user_block_bytes(hid_t file) {
  const Handle creation(H5Fget_create_plist(file));
  hsize_t bytes = 0;
  return creation && H5Pget_userblock(creation.get(), &bytes) >= 0 ? bytes : 0;
}

void find_dataset(hid_t file, const std::string& name, const std::string& path) {
  const std::string what = dataset_of(name, path);
  switch (find_object(file, name, path)) {
    case Hdf5Kind::dataset:
      return;
    case Hdf5Kind::group:
      throw sdk::Error(HR_INVALID_ARGUMENT, what + " is a group, not a dataset; it holds " + contents(file, name));
    case Hdf5Kind::other:
      throw sdk::Error(HR_INVALID_ARGUMENT, what + " is a named type, not a dataset");
  }
}

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

// A wrong offset shows in the first record, a wrong record size in the last one.
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

// With a user block, libhdf5 lists offsets from the file's start or from the block's end, depending on the version:
// compare both. A chunk that can be read in neither way is damaged and does not count.
bool chunks_agree(hid_t dataset, int file, uint64_t user_block_bytes, ArrayPlan& plan) {
  bool as_listed = true, behind_user_block = user_block_bytes > 0, compared = false;
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
    as_listed = as_listed && expected == here;
    behind_user_block = behind_user_block && expected == there;
  }
  if (!compared) return user_block_bytes == 0;       // nothing stored, or nothing sound
  if (as_listed == behind_user_block) return false;  // neither, or both: nothing to choose by
  if (behind_user_block) {
    for (StoredChunk& chunk : plan.chunks) chunk.offset += user_block_bytes;
  }
  return true;
}

// Whether what the plan reads is what libhdf5 reads: compares single records of `dataset`; `file` is a descriptor of
// its file. Chunks' offsets are moved behind the user block where libhdf5 left it out. False: the plan is not to be
// used.
bool agrees_with_library(hid_t dataset, int file, uint64_t user_block_bytes, ArrayPlan& plan) {
  if (plan.lane == Lane::contiguous) return contiguous_agrees(dataset, file, plan);
  if (plan.lane == Lane::chunk_table) return chunks_agree(dataset, file, user_block_bytes, plan);
  // In the other lanes libhdf5 itself finds the bytes, so there is no place to compare.
  return true;
}

}  // namespace

std::string lane_name(Lane lane) {
  switch (lane) {
    case Lane::contiguous:
      return "direct";
    case Lane::chunk_table:
      return "direct chunks";
    case Lane::chunk_calls:
      return "chunks through libhdf5";
    case Lane::library:
      break;
  }
  return "libhdf5";
}

ArrayPlan plan_array(Hdf5File& file, const std::string& dataset, bool may_print) {
  const std::string what = dataset_of(dataset, file.path());
  find_dataset(file.id(), dataset, file.path());
  const Handle opened(H5Dopen2(file.id(), dataset.c_str(), H5P_DEFAULT));
  if (!opened) {
    throw_hdf5(what + " cannot be opened", hdf5_reason());
  }
  ArrayPlan plan;
  plan.file = file.identity();
  plan.others = other_files_of(opened.get(), file.path());
  plan.layout = read_layout(opened.get(), what);
  plan.why_library = choose_lane(file.id(), opened.get(), may_print, plan);
  if (!plan.why_library.empty()) plan.lane = Lane::library;

  const Descriptor direct(::open(file.path().c_str(), O_RDONLY | O_CLOEXEC));
  if (direct.get() < 0) throw_cannot_open(file.path(), errno);
  if (!agrees_with_library(opened.get(), direct.get(), user_block_bytes(file.id()), plan)) {
    plan.lane = Lane::library;
    plan.why_library = "libhdf5 reads other bytes than stand where it says";
  }
  plan.layout.memory_type = Handle();  // libhdf5's, and so not for the threads that read
  return plan;
}

}  // namespace headroom
