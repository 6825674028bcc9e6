#include "arrays/hdf5_array.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "arrays/hdf5_object.hpp"
#include "headroom/sdk/shape_text.hpp"

namespace headroom {

namespace {

// Of each thread's buffer for records that are converted after H5Dread().
constexpr uint64_t sink_block_bytes = 4 << 20;

// Extents of blocks of at most `most` elements (at least one) that are dense in the box: whole trailing axes, a part of
// one axis, and 1 along all axes before it.
Coordinates neighbours(std::span<const uint64_t> count, uint64_t most) {
  Coordinates extents{};
  for (size_t axis = count.size(); axis-- > 0;) {
    extents[axis] = std::clamp<uint64_t>(most, 1, count[axis]);
    most = extents[axis] == count[axis] ? most / count[axis] : 1;
  }
  return extents;
}

[[noreturn]] void throw_bad_chunk(const std::string& reason) {
  if (const int code = errno_of(reason); code != 0) throw BadPlace{.code = code};
  throw BadPlace{.damage = reason};
}

}  // namespace

Hdf5Array::Hdf5Array(const std::string& path, const std::string& dataset, std::shared_ptr<ArraySession> session)
    : session_(std::move(session)),
      mapped_(session_->maps_files()),
      path_(path),
      name_(absolute_name(dataset)),
      planned_(planned_array(path_, name_)) {}

void Hdf5Array::check_box(std::span<const uint64_t> start, std::span<const uint64_t> count) const {
  for (size_t axis = 0; axis < layout().shape.size(); ++axis) {
    const uint64_t extent = layout().shape[axis];
    // start + count may overflow, so the count is compared with what is left.
    if (start[axis] <= extent && count[axis] <= extent - start[axis]) continue;
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " has shape " + sdk::shape_text(layout().shape) + "; " +
                                              sdk::shape_text(count) + " from " + sdk::shape_text(start) +
                                              " reaches beyond it");
  }
}

const ArrayMember& Hdf5Array::checked_target(const hr_array_target& target) const {
  const bool whole = target.member == HR_WHOLE;
  if (whole && layout().compound) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " is a compound of " + std::to_string(layout().members.size()) +
                                              " members; each is read by its own number");
  }
  if (!whole && target.member >= layout().members.size()) {
    throw sdk::Error(HR_INVALID_ARGUMENT, what() + " has " + std::to_string(layout().members.size()) +
                                              " members; there is no member number " + std::to_string(target.member));
  }
  const ArrayMember& member = whole ? layout().element : layout().members[target.member];
  const auto name = [&] { return whole ? what() : "member " + in_quotes(member.name) + " of " + what(); };
  if (!member.readable()) {
    throw sdk::Error(HR_INVALID_ARGUMENT, name() + " is of type " + member.type_name +
                                              "; integers, floats and bool of 1 to 8 bytes can be read");
  }
  if (!convertible(member.dtype, target.dtype)) {
    throw sdk::Error(HR_INVALID_ARGUMENT, name() + " is " + array_dtype_name(member.dtype) +
                                              ", which does not convert to " + array_dtype_name(target.dtype) +
                                              " without loss; ask for a float or a wider type");
  }
  const uint64_t bytes = member.values * (target.dtype.bits / 8u);
  if (target.data == nullptr || (target.stride_bytes != 0 && target.stride_bytes < bytes)) {
    throw sdk::Error(HR_INVALID_ARGUMENT,
                     name() + " was asked for without room: one element takes " + std::to_string(bytes) + " bytes");
  }
  return member;
}

// Under Hdf5Lock.
Hdf5File::Dataset& Hdf5Array::library_dataset(uint64_t cache_bytes) const {
  if (library_ == nullptr) {
    auto file = Hdf5File::share(path_);
    // Another state of the file would be read with the plan's shape and types.
    if (file->identity() != plan().file) throw_changed(path_);
    library_ = std::move(file);
  }
  Hdf5File::Dataset& dataset = library_->dataset(name_, cache_bytes, session_->chunks());
  // The plan came without identifiers of libhdf5: they are of the process that made them.
  if (!memory_type_) memory_type_ = std::move(read_layout(dataset.id.get(), what()).memory_type);
  return dataset;
}

void Hdf5Array::read_block(std::span<const uint64_t> start, std::span<const uint64_t> count, void* records) const {
  const Hdf5Lock lock;
  const Hdf5File::Dataset& dataset = library_dataset(chunk_cache_bytes(layout().chunk_bytes()));
  const hsize_t elements = product(count);
  std::array<hsize_t, HR_MAX_DIMS> from{}, extent{};
  std::copy(start.begin(), start.end(), from.begin());
  std::copy(count.begin(), count.end(), extent.begin());
  // In memory the box is one dense row of records.
  const Handle memory(H5Screate_simple(1, &elements, nullptr));
  // A scalar dataspace has no hyperslabs.
  herr_t status = count.empty() ? H5Sselect_all(dataset.space.get())
                                : H5Sselect_hyperslab(dataset.space.get(), H5S_SELECT_SET, from.data(), nullptr,
                                                      extent.data(), nullptr);
  // Where nothing is stored and there is no fill value, libhdf5 leaves the memory as it is.
  std::memset(records, 0, elements * layout().record_bytes);
  if (status >= 0)
    status = H5Dread(dataset.id.get(), memory_type_.get(), memory.get(), dataset.space.get(), H5P_DEFAULT, records);
  if (status >= 0) return;
  throw_hdf5(what() + " cannot be read from " + sdk::shape_text(start) + " for " + sdk::shape_text(count),
             hdf5_reason());
}

ThreadBuffer::Use Hdf5Array::fetch_chunk(const Coordinates& origin, uint32_t& filter_mask) const {
  thread_local ThreadBuffer buffer;
  const Hdf5Lock lock;
  // Without a cache of libhdf5's: ChunkCache keeps the decoded chunk.
  const Hdf5File::Dataset& dataset = library_dataset(0);
  std::array<hsize_t, HR_MAX_DIMS> at{};
  std::copy(origin.begin(), origin.end(), at.begin());
  hsize_t bytes = 0;
  if (H5Dget_chunk_storage_size(dataset.id.get(), at.data(), &bytes) < 0) {
    const std::string reason = hdf5_reason();  // libhdf5 1.10 has one also for a chunk that was never written
    if (reason.find("not allocated") == std::string::npos) throw_bad_chunk(reason);
    return {};
  }
  if (bytes == 0) return {};
  // A damaged index may give any size.
  if (bytes > plan().file.size_bytes) throw BadPlace{.ends_early = true};
  ThreadBuffer::Use use = buffer.take(bytes);
  std::byte* const stored = use.data();
  // libhdf5 may fill less than the size it gave for a damaged chunk, without an error. Then the last byte keeps its
  // mark.
  for (const std::byte mark : {std::byte{0xA5}, std::byte{0x5A}}) {
    stored[bytes - 1] = mark;
    if (H5Dread_chunk(dataset.id.get(), H5P_DEFAULT, at.data(), &filter_mask, stored) < 0)
      throw_bad_chunk(hdf5_reason());
    if (stored[bytes - 1] != mark) return use;
  }
  throw BadPlace{.damage = "it is shorter than it should be"};
}

void Hdf5Array::throw_bad(const BadPlace& bad, std::span<const uint64_t> start, std::span<const uint64_t> count) const {
  const std::span<const uint64_t> origin(bad.chunk_origin.data(), layout().shape.size());
  const std::string part = bad.in_chunk ? "the chunk at " + sdk::shape_text(origin) + " of " + what()
                                        : what() + " from " + sdk::shape_text(start) + " for " + sdk::shape_text(count);
  if (!bad.damage.empty()) {
    throw sdk::Error(HR_DATA_CORRUPT, part + " is damaged: " + bad.damage + "; copy the file again or leave it out");
  }
  if (bad.ends_early) {
    throw sdk::Error(HR_DATA_CORRUPT, part + " reaches beyond the end of the file; copy it again or leave it out");
  }
  throw sdk::Error(HR_IO, part + " cannot be read: " + std::strerror(bad.code) + "; check the disk");
}

void Hdf5Array::read_by_library(std::span<const uint64_t> start, std::span<const uint64_t> count,
                                RecordSink& sink) const {
  thread_local ThreadBuffer buffer;
  if (std::byte* place = sink.place_of(0)) {
    read_block(start, count, place);
    return sink.check_records(0, product(count));
  }
  const uint64_t most = std::max<uint64_t>(1, sink_block_bytes / sink.record_bytes());
  const Coordinates extents = neighbours(count, most);
  // Blocks are dense in the box and come in row-major order, so their records follow one another.
  uint64_t done = 0;
  each_block(start, count, {extents.data(), count.size()}, [&](auto block_start, auto block_count) {
    const uint64_t elements = product(block_count);
    const ThreadBuffer::Use records = buffer.take(elements * sink.record_bytes());
    read_block(block_start, block_count, records.data());
    sink.put(records.data(), done, elements);
    done += elements;
  });
}

bool Hdf5Array::read_box(std::span<const uint64_t> start, std::span<const uint64_t> count,
                         std::span<const hr_array_target> targets, bool check_finite) const {
  check_box(start, count);
  // All of them before the first byte is read, so that a refused target leaves none half filled.
  for (const hr_array_target& target : targets) checked_target(target);
  if (targets.empty() || product(count) == 0) return true;
  RecordSink sink(layout(), targets, product(count), check_finite);
  read(start, count, sink);
  return sink.finite();
}

void Hdf5Array::read_records(std::span<const uint64_t> start, std::span<const uint64_t> count,
                             std::byte* records) const {
  check_box(start, count);
  if (product(count) == 0) return;
  RecordSink sink(layout(), records);
  read(start, count, sink);
}

// Whatever goes wrong, a file that changed is the better explanation, so that is checked first.
void Hdf5Array::read(std::span<const uint64_t> start, std::span<const uint64_t> count, RecordSink& sink) const {
  const auto file = planned_.file->open();
  try {
    read_by_lane(*file, start, count, sink);
  } catch (const BadPlace& bad) {
    require_all_unchanged(*file);
    throw_bad(bad, start, count);
  } catch (const sdk::Error&) {
    require_all_unchanged(*file);
    throw;
  }
  require_all_unchanged(*file);  // after the read: it may have changed in the middle
}

void Hdf5Array::require_all_unchanged(const Descriptor& own) const {
  planned_.file->require_unchanged(own);
  require_unchanged(plan().others);
}

void Hdf5Array::read_by_lane(const Descriptor& descriptor, std::span<const uint64_t> start,
                             std::span<const uint64_t> count, RecordSink& sink) const {
  if (plan().lane == Lane::library) return read_by_library(start, count, sink);
  static const FileMap none;
  const FileBytes file{descriptor.get(), mapped_ ? planned_.file->map(descriptor) : none, *session_->chunks()};
  if (plan().lane == Lane::contiguous) return read_contiguous(plan(), file, start, count, sink);
  read_chunks(plan(), file, start, count, sink,
              [this](const Coordinates& origin, uint32_t& mask) { return fetch_chunk(origin, mask); });
}

}  // namespace headroom
