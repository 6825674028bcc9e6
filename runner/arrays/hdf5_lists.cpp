#include "arrays/hdf5_lists.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "arrays/convert.hpp"
#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/thread_buffer.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "memory/ledger.hpp"

namespace headroom {

namespace {

// What H5Dread puts into lists: at most longest_list_bytes, on the ledger, freed with this.
class ListMemory {
 public:
  ListMemory() {
    const Hdf5Lock lock;
    transfer_ = Handle(H5Pcreate(H5P_DATASET_XFER));
    H5Pset_vlen_mem_manager(
        transfer_.get(), take, this, [](void*, void*) {}, nullptr);
  }
  ~ListMemory() { account(Owner::reads, -static_cast<int64_t>(bytes_)); }
  ListMemory(const ListMemory&) = delete;
  ListMemory& operator=(const ListMemory&) = delete;

  hid_t transfer() const { return transfer_.get(); }
  uint64_t bytes() const { return bytes_; }
  uint64_t refused_bytes() const { return refused_bytes_; }  // of the list that did not fit; 0: all did

 private:
  // libhdf5 calls it, and reports NULL as a failed read.
  static void* take(size_t bytes, void* context) {
    auto& self = *static_cast<ListMemory*>(context);
    if (bytes > longest_list_bytes - self.bytes_) {
      self.refused_bytes_ = bytes;
      return nullptr;
    }
    try {
      self.lists_.push_back(std::make_unique_for_overwrite<std::byte[]>(bytes));
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    self.bytes_ += bytes;
    account(Owner::reads, static_cast<int64_t>(bytes));
    return self.lists_.back().get();
  }

  Handle transfer_;
  std::vector<std::unique_ptr<std::byte[]>> lists_;
  uint64_t bytes_ = 0, refused_bytes_ = 0;
};

[[noreturn]] void throw_unread_list(const std::string& what, const ListMemory& memory, const std::string& reason) {
  if (memory.refused_bytes() == 0) throw_hdf5(what + " cannot be read", reason);
  throw sdk::Error(HR_UNSUPPORTED, what + " takes " + std::to_string(memory.refused_bytes()) + " bytes; at most " +
                                       std::to_string(longest_list_bytes >> 20) +
                                       " MiB are read: write it as several, or end to end with episode_ends");
}

constexpr uint64_t most_lists_seen = 1u << 16, most_bytes_seen = 16u << 20;
constexpr uint64_t lists_of_a_read = 256, bytes_of_a_read = 1u << 20;

// The indices of lists [first, first + count) in row-major order, one after the other.
std::vector<hsize_t> indices_of(const std::vector<uint64_t>& shape, uint64_t first, uint64_t count) {
  std::vector<hsize_t> at(count * shape.size());
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t rest = first + i;
    for (size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) at[i * shape.size() + axis] = rest % shape[axis];
  }
  return at;
}

// Reads the lists at these indices; a scalar has none.
herr_t read_lists(hid_t dataset, hid_t type, hid_t space, const std::vector<hsize_t>& at, const ListMemory& memory,
                  std::vector<hvl_t>& lists) {
  const hsize_t count = lists.size();
  const Handle dense(H5Screate_simple(1, &count, nullptr));
  const herr_t selected =
      at.empty() ? H5Sselect_all(space) : H5Sselect_elements(space, H5S_SELECT_SET, lists.size(), at.data());
  return selected < 0 ? selected : H5Dread(dataset, type, dense.get(), space, memory.transfer(), lists.data());
}

void add(const std::vector<hvl_t>& lists, ListLengths& lengths) {
  for (const hvl_t& list : lists) {
    if (lengths.seen == 0 || list.len < lengths.shortest) lengths.shortest = list.len;
    if (list.len > lengths.longest) {
      lengths.longest = list.len;
      lengths.longest_at = lengths.seen;
    }
    lengths.values += list.len;
    ++lengths.seen;
  }
}

ListLengths measure(hid_t dataset, const ArrayLayout& layout, const std::string& what) {
  ListLengths lengths;
  const Handle space(H5Dget_space(dataset));
  uint64_t all = 1, bytes = 0, together = 1;
  for (const uint64_t extent : layout.shape) all *= extent;
  all = std::min(all, most_lists_seen);
  while (lengths.seen < all && bytes < most_bytes_seen) {
    const ListMemory memory;
    std::vector<hvl_t> lists(std::min(together, all - lengths.seen));
    const std::vector<hsize_t> at = indices_of(layout.shape, lengths.seen, lists.size());
    if (read_lists(dataset, layout.memory_type.get(), space.get(), at, memory, lists) < 0) {
      const std::string reason = hdf5_reason();
      // Together they may be too large where none is.
      if (memory.refused_bytes() == 0 || together == 1) throw_unread_list(what, memory, reason);
      together = 1;
      continue;
    }
    add(lists, lengths);
    bytes += memory.bytes();
    together = memory.bytes() > bytes_of_a_read ? 1 : std::min(2 * together, lists_of_a_read);
  }
  return lengths;
}

}  // namespace

ListLengths measure_lists(hid_t dataset, const std::string& what) {
  const ArrayLayout layout = read_layout(dataset, what);
  return layout.list_value.readable() ? measure(dataset, layout, what) : ListLengths{};
}

ListLengths list_lengths_of(hid_t file, const std::string& dataset, const std::string& path) {
  const std::string what = dataset_of(dataset, path);
  if (find_object(file, dataset, path) != Hdf5Kind::dataset)
    throw sdk::Error(HR_INVALID_ARGUMENT, what + " is not a dataset");
  const Handle opened(H5Dopen2(file, dataset.c_str(), H5P_DEFAULT));
  if (!opened) throw_hdf5(what + " cannot be opened", hdf5_reason());
  const ArrayLayout layout = read_layout(opened.get(), what);
  if (!layout.list_value.readable()) {
    const Handle type(H5Dget_type(opened.get()));
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     what + " holds " + hdf5_type_name(type.get()) + " values; lists of numbers are needed");
  }
  return measure(opened.get(), layout, "a list of " + what);
}

const ArrayMember& Hdf5Array::list_value() const {
  if (layout().list_value.readable()) return layout().list_value;
  throw sdk::Error(HR_INVALID_ARGUMENT, what() + " does not hold lists of numbers");
}

uint64_t Hdf5Array::read_list(std::span<const uint64_t> at, DLDataType dtype, void* to, uint64_t most) const {
  const ArrayMember& value = list_value();
  if (!convertible(value.dtype, dtype)) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " holds lists of " + array_dtype_name(value.dtype) +
                                              ", which does not convert to " + array_dtype_name(dtype) +
                                              " without loss; ask for a float or a wider type");
  }
  check_box(at, std::vector<uint64_t>(at.size(), 1));
  const auto file = planned_.file->open();
  const ListMemory memory;
  std::vector<hvl_t> list(1);
  try {
    const Hdf5Lock lock;
    const Hdf5File::Dataset& dataset = library_dataset(chunk_cache_bytes(layout().chunk_bytes()));
    if (read_lists(dataset.id.get(), memory_type_.get(), dataset.space.get(), {at.begin(), at.end()}, memory, list) <
        0) {
      const std::string reason = hdf5_reason();
      throw_unread_list("the list at " + sdk::shape_text(at) + " of " + what(), memory, reason);
    }
  } catch (const sdk::Error&) {
    require_all_unchanged(*file);
    throw;
  }
  require_all_unchanged(*file);
  note_bytes_beside_buffers(static_cast<int64_t>(memory.bytes()));
  const uint64_t values = std::min<uint64_t>(most, list[0].len);
  if (values > 0) {
    convert({.from_dtype = value.dtype,
             .to_dtype = dtype,
             .swap = value.big_endian,
             .values = values,
             .from = static_cast<const std::byte*>(list[0].p),
             .to = static_cast<std::byte*>(to),
             .elements = 1});
  }
  return list[0].len;
}

}  // namespace headroom
