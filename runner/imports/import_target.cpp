#include "imports/import_target.hpp"

#include <algorithm>
#include <zlib.h>

#include "arrays/hdf5_array.hpp"
#include "arrays/hdf5_object.hpp"
#include "arrays/open_files.hpp"

namespace headroom {

namespace {

constexpr uint64_t largest_row = 1 << 30;       // it is one block in memory
constexpr uint64_t plain_chunk = 1 << 20;       // any part of it can be read alone
constexpr uint64_t deflated_chunk = 64 << 10;   // it is read as a whole
constexpr uint64_t read_back_bytes = 4u << 20;  // at a time
constexpr size_t most_channel_names = 4000;     // an attribute of libhdf5's oldest format holds 64 KiB, a name takes 16

uint32_t checksum_of(uint32_t so_far, std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

uint32_t ImportTarget::dataset(const NewDataset& dataset) {
  Written written{absolute_name(dataset.name), dataset.dtype.bits / 8u};
  require_own_name(written.name);
  const size_t axes = dataset.shape.size();
  if (axes > HR_MAX_DIMS)
    throw sdk::Error(HR_UNSUPPORTED,
                     in_quotes(dataset.name) + " has " + std::to_string(axes) + " axes; 1 to 8 can be written");
  for (size_t axis = 1; axis < axes; ++axis) {
    if (dataset.shape[axis] > 0 && written.row_bytes > largest_row / dataset.shape[axis])
      throw sdk::Error(HR_UNSUPPORTED, in_quotes(dataset.name) + " has rows of more than 1 GiB; store it in more rows");
    written.row_bytes *= dataset.shape[axis];
  }
  if (written.row_bytes == 0) throw sdk::Error(HR_UNSUPPORTED, in_quotes(dataset.name) + " has rows without values");
  hr_array_spec spec{};
  spec.struct_size = sizeof spec;
  spec.ndim = static_cast<int32_t>(axes);
  spec.dataset = written.name.c_str();
  spec.dtype = dataset.dtype;
  std::copy_n(dataset.shape.begin(), axes, spec.shape);
  if (deflate_ > 0 || dataset.shape[0] == 0) {
    std::copy_n(dataset.shape.begin(), axes, spec.chunk);
    spec.chunk[0] = std::max<uint64_t>(1, (deflate_ > 0 ? deflated_chunk : plain_chunk) / written.row_bytes);
    if (dataset.shape[0] > 0) spec.chunk[0] = std::min(spec.chunk[0], dataset.shape[0]);
    spec.deflate = deflate_;
  }
  const uint32_t id = writer_.dataset(spec);
  if (!dataset.channel_names.empty() && dataset.channel_names.size() <= most_channel_names)
    writer_.strings(written.name, "channel_names", dataset.channel_names);
  written_.push_back(std::move(written));
  return id;
}

// libhdf5 would tell it as a failure to write.
void ImportTarget::require_own_name(const std::string& name) const {
  const bool is_none = name.ends_with('/');
  for (const Written& other : written_) {
    const bool inside = name.starts_with(other.name + "/") || other.name.starts_with(name + "/");
    if (other.name != name && !inside) continue;
    throw sdk::Error(HR_UNSUPPORTED, "it would have datasets " + in_quotes(other.name) + " and " + in_quotes(name) +
                                         ", which one HDF5 file cannot; rename one of them");
  }
  if (is_none) throw sdk::Error(HR_UNSUPPORTED, "a dataset of it would have no name; give it one");
}

void ImportTarget::append(uint32_t id, std::span<const std::byte> values, uint64_t rows) {
  if (rows == 0) return;
  writer_.append(id, values.data(), rows);
  Written& written = written_.at(id);
  written.rows += rows;
  written.checksum = checksum_of(written.checksum, values.first(rows * written.row_bytes));
}

void ImportTarget::finish(bool verify) {
  writer_.commit();
  if (!verify) return;
  for (const Written& written : written_) require_reads_back(written);
}

void ImportTarget::require_reads_back(const Written& written) const {
  if (written.rows == 0) return;
  const Hdf5Array array(file_.string(), written.name);
  const auto differs = [&] {
    return CannotWrite(dataset_of(written.name, file_.string()) +
                       " does not read back as it was written; check the disk, and convert it again");
  };
  std::vector<uint64_t> start(array.layout().shape.size(), 0), count = array.layout().shape;
  if (count[0] != written.rows || !array.layout().as_in_file) throw differs();
  const uint64_t at_once = std::max<uint64_t>(1, read_back_bytes / written.row_bytes);
  std::vector<std::byte> block(std::min(at_once, written.rows) * written.row_bytes);
  uint32_t checksum = 0;
  for (uint64_t row = 0; row < written.rows; row += at_once) {
    start[0] = row;
    count[0] = std::min(at_once, written.rows - row);
    array.read_records(start, count, block.data());
    checksum = checksum_of(checksum, std::span(block).first(count[0] * written.row_bytes));
  }
  if (checksum != written.checksum) throw differs();
}

}  // namespace headroom
