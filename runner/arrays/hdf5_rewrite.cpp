#include "arrays/hdf5_rewrite.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>

#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_child.hpp"
#include "arrays/hdf5_writer.hpp"
#include "arrays/open_files.hpp"
#include "headroom/sdk/shape_text.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

namespace {

constexpr uint64_t smallest_rewritten = 64u << 10;  // bytes; what is smaller is copied as it is
// Of a block in memory. It is at least one chunk, which may be larger.
constexpr uint64_t rewrite_block_bytes = 8u << 20;
constexpr uint64_t largest_chunk = 64u << 20;
constexpr uint64_t usual_chunk = 1u << 20;

// The extents of a chunk, none larger than the dataset. `wanted` is RewriteOptions::chunk, {} where that is for other
// datasets.
std::vector<uint64_t> chunk_of(const SurveyedObject& object, const std::vector<uint64_t>& wanted) {
  std::vector<uint64_t> chunk = object.shape;
  if (wanted.size() == chunk.size()) chunk = wanted;
  uint64_t row_bytes = object.element_bytes;
  for (size_t axis = 1; axis < chunk.size(); ++axis) row_bytes *= std::min(chunk[axis], object.shape[axis]);
  if (wanted.empty()) chunk[0] = std::max<uint64_t>(1, usual_chunk / std::max<uint64_t>(1, row_bytes));
  if (wanted.size() == 1) chunk[0] = wanted[0];
  uint64_t bytes = object.element_bytes;
  for (size_t axis = 0; axis < chunk.size(); ++axis) {
    chunk[axis] = std::min(chunk[axis], object.shape[axis]);
    bytes *= chunk[axis];
  }
  if (bytes > largest_chunk) {
    throw sdk::Error(HR_INVALID_ARGUMENT, "chunks " + sdk::shape_text(chunk) + " of " + in_quotes(object.name) +
                                              " would have " + std::to_string(bytes >> 20) +
                                              " MiB; at most 64 MiB: set a smaller chunk");
  }
  return chunk;
}

bool has_filter(const SurveyedObject& object, int id) {
  return std::ranges::any_of(object.filters, [id](const StoredFilter& filter) { return filter.id == id; });
}

// Extents of the blocks in which a dataset is copied: whole chunks, so that each is encoded once, and as many along the
// last axes as fit.
std::vector<uint64_t> block_of(const ArrayLayout& layout, const std::vector<uint64_t>& unit) {
  std::vector<uint64_t> block(layout.shape.size(), 1);
  if (unit.size() == block.size()) block = unit;
  uint64_t bytes = layout.record_bytes;
  for (size_t axis = 0; axis < block.size(); ++axis) bytes *= block[axis] = std::min(block[axis], layout.shape[axis]);
  for (size_t axis = block.size(); axis-- > 0;) {
    const uint64_t times = std::max<uint64_t>(1, rewrite_block_bytes / std::max<uint64_t>(1, bytes));
    const uint64_t extent = std::min(layout.shape[axis], block[axis] * times);
    bytes = bytes / block[axis] * extent;
    block[axis] = extent;
    if (extent < layout.shape[axis]) break;
  }
  return block;
}

// In this order: declare() has the child write the file without values, carry_over() copies them, copy_user_block(),
// verify().
class Rewrite {
 public:
  Rewrite(const std::string& from, const std::string& to, const std::filesystem::path& tree,
          const RewriteProgress& progress)
      : from_(from), to_(to), progress_(progress) {
    request_.to = to_;
    if (!tree.empty()) request_.tree = std::filesystem::absolute(tree).string();
  }

  void add(const NewLayout& layout, uint64_t bytes) {
    request_.layouts.push_back(layout);
    all_ += bytes;
  }
  void add_check(const std::string& dataset, const std::vector<uint64_t>& unit, uint64_t bytes) {
    checks_.push_back({dataset, unit});
    all_ += bytes;
  }
  uint64_t rewritten() const { return request_.layouts.size(); }

  void declare() { ask_hdf5({.kind = Hdf5Question::Kind::copy, .path = from_, .copy = request_}); }

  void carry_over() {
    const Handle file = open_copy();
    for (const NewLayout& layout : request_.layouts) carry_over(file.get(), layout);
    const Hdf5Lock lock;
    // A Handle reports no failure to close, so a full disk has to show here.
    if (H5Fflush(file.get(), H5F_SCOPE_LOCAL) < 0) throw_cannot_write(to_, "flush");
  }

  // Bytes before the HDF5 part, such as MATLAB's.
  void copy_user_block(uint64_t bytes) const {
    if (bytes == 0) return;
    // libhdf5 writes nothing there: the HDF5 part begins behind it.
    std::vector<char> block(bytes);
    const Descriptor from(::open(from_.c_str(), O_RDONLY | O_CLOEXEC)), to(::open(to_.c_str(), O_WRONLY | O_CLOEXEC));
    if (::pread(from.get(), block.data(), bytes, 0) != static_cast<ssize_t>(bytes))
      throw sdk::Error(HR_IO, in_quotes(from_) + " cannot be read: " + std::strerror(errno));
    if (::pwrite(to.get(), block.data(), bytes, 0) != static_cast<ssize_t>(bytes))
      throw CannotWrite("cannot write " + in_quotes(to_) + ": " + std::strerror(errno));
  }

  void verify() {
    for (const Check& check : checks_) compare(check);
  }

 private:
  void carry_over(hid_t file, const NewLayout& layout) {
    const Hdf5Array source(from_, layout.dataset);
    const ArrayLayout& old = source.layout();
    const std::vector<uint64_t> origin(old.shape.size(), 0);
    const Target target = target_of(file, layout.dataset);
    // In chunks of the copy, so that each is encoded once; a contiguous copy takes those of the source, which are
    // decoded once.
    each_block(origin, old.shape, block_of(old, layout.chunk.empty() ? old.chunk : layout.chunk),
               [&](const auto& start, const auto& count) {
                 const std::span<std::byte> block = read(source, start, count, first_);
                 write(target, start, count, block.data());
                 advance(block.size());
               });
  }

  struct Target {
    Handle dataset, type, space;
  };

  Handle open_copy() const {
    const Hdf5Lock lock;
    Handle file(H5Fopen(to_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    if (!file) throw_cannot_write(to_, "open");
    return file;
  }

  Target target_of(hid_t file, const std::string& name) const {
    const Hdf5Lock lock;
    Target target{Handle(H5Dopen2(file, name.c_str(), H5P_DEFAULT)), {}, {}};
    if (!target.dataset) throw_cannot_write(to_, "open " + name);
    target.type = Handle(H5Dget_type(target.dataset.get()));
    target.space = Handle(H5Dget_space(target.dataset.get()));
    return target;
  }

  struct Check {
    std::string dataset;
    std::vector<uint64_t> unit;  // in whose multiples it is read; {}: the source's chunks
  };

  void compare(const Check& check) {
    const Hdf5Array source(from_, check.dataset), copy(to_, check.dataset);
    const ArrayLayout& old = source.layout();
    const std::vector<uint64_t> origin(old.shape.size(), 0);
    if (copy.layout().shape != old.shape) throw_differs(check.dataset);
    each_block(origin, old.shape, block_of(old, check.unit.empty() ? old.chunk : check.unit),
               [&](const auto& start, const auto& count) {
                 const auto was = read(source, start, count, first_);
                 const auto is = read(copy, start, count, second_);
                 // Bytes and not values, so that NaN equals itself.
                 if (std::memcmp(was.data(), is.data(), was.size()) != 0) throw_differs(check.dataset);
                 advance(was.size());
               });
  }

  [[noreturn]] void throw_differs(const std::string& dataset) const {
    throw sdk::Error(HR_IO, dataset_of(dataset, to_) + " does not read back as it was written, or " + in_quotes(from_) +
                                " changed meanwhile; check the disk, and convert it again");
  }

  static std::span<std::byte> read(const Hdf5Array& array, std::span<const uint64_t> start,
                                   std::span<const uint64_t> count, std::vector<std::byte>& block) {
    const uint64_t bytes = product(count) * array.layout().record_bytes;
    // It only grows, so that one buffer serves all datasets.
    if (block.size() < bytes) block.resize(bytes);
    array.read_records(start, count, block.data());
    return {block.data(), bytes};
  }

  void write(const Target& target, std::span<const uint64_t> start, std::span<const uint64_t> count,
             const std::byte* block) const {
    const Hdf5Lock lock;
    const std::vector<hsize_t> from(start.begin(), start.end()), extent(count.begin(), count.end());
    const Handle memory(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr));
    H5Sselect_hyperslab(target.space.get(), H5S_SELECT_SET, from.data(), nullptr, extent.data(), nullptr);
    if (H5Dwrite(target.dataset.get(), target.type.get(), memory.get(), target.space.get(), H5P_DEFAULT, block) < 0)
      throw_cannot_write(to_, "write values");
  }

  void advance(uint64_t bytes) {
    done_ += bytes;
    progress_(done_, all_);
  }

  const std::string &from_, &to_;
  const RewriteProgress& progress_;
  CopyRequest request_;
  std::vector<Check> checks_;
  std::vector<std::byte> first_, second_;
  uint64_t done_ = 0, all_ = 0;
};

}  // namespace

std::optional<NewLayout> new_layout(const SurveyedObject& object, const RewriteOptions& options) {
  // Values that were in other files are in this one afterwards.
  const bool scattered = object.layout == "virtual" || object.layout == "external";
  if (object.is_group || object.shape.empty() || object.raw_bytes == 0) return std::nullopt;
  if (!scattered && object.raw_bytes < smallest_rewritten) return std::nullopt;
  NewLayout layout{object.name, {}, -1, false};
  // Several extents say nothing of datasets with more or fewer axes.
  const bool chunk_is_for_it = options.chunk.size() == 1 || options.chunk.size() == object.shape.size();
  const std::vector<uint64_t> wanted = chunk_is_for_it ? options.chunk : std::vector<uint64_t>();
  const bool packed = options.deflate || !wanted.empty();
  if (options.contiguous || (!packed && object.filters.empty())) return layout;
  if (!packed) return std::nullopt;
  layout.chunk = chunk_of(object, wanted);
  // What was deflated stays so, at h5py's default level.
  layout.deflate = options.deflate.value_or(has_filter(object, H5Z_FILTER_DEFLATE) ? 4 : -1);
  layout.shuffle = options.shuffle || has_filter(object, H5Z_FILTER_SHUFFLE);
  return layout;
}

Rewritten rewrite_file(const std::string& from, const std::string& to, const RewriteOptions& options,
                       const RewriteProgress& progress) {
  const Survey survey = ask_hdf5({.kind = Hdf5Question::Kind::survey, .path = from}).survey;
  if (survey.cut_off)
    throw sdk::Error(HR_UNSUPPORTED, in_quotes(from) + " holds more than 100,000 objects; rewrite it with h5repack");
  Rewrite rewrite(from, to, options.tree, progress);
  uint64_t datasets = 0;
  std::vector<OtherFile> others;
  for (const SurveyedObject& object : survey.objects) {
    if (object.is_group) continue;
    ++datasets;
    if (!object.problem.empty())
      throw sdk::Error(HR_DATA_CORRUPT, dataset_of(object.name, from) + ": " + object.problem);
    // What Hdf5Array does not read is copied as it is too.
    if (object.references || object.raw_bytes == 0 || object.shape.size() > HR_MAX_DIMS) continue;
    const Hdf5Array array(from, object.name);
    others.insert(others.end(), array.plan().others.begin(), array.plan().others.end());
    // Lists and the like have another form in memory than in the file.
    if (!array.layout().as_in_file) continue;
    const auto layout = new_layout(object, options);
    if (layout) rewrite.add(*layout, object.raw_bytes);
    if (options.verify) rewrite.add_check(object.name, layout ? layout->chunk : object.chunk, object.raw_bytes);
  }
  rewrite.declare();
  rewrite.carry_over();
  rewrite.copy_user_block(survey.user_block_bytes);
  if (options.verify) rewrite.verify();
  std::ranges::sort(others, {}, &OtherFile::path);
  const auto is_same = [](const OtherFile& a, const OtherFile& b) { return a.path == b.path; };
  others.erase(std::unique(others.begin(), others.end(), is_same), others.end());
  return {rewrite.rewritten(), datasets - rewrite.rewritten(), std::move(others)};
}

}  // namespace headroom
