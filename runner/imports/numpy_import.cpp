#include "imports/numpy_import.hpp"

#include <algorithm>
#include <cstring>

#include "arrays/open_files.hpp"
#include "imports/npy_array.hpp"
#include "imports/unpacked_entry.hpp"
#include "memory/readable.hpp"
#include "record/mapped_file.hpp"
#include "record/torch_zip.hpp"

namespace headroom {

namespace {

constexpr uint64_t npy_block_bytes = 4 << 20;

// Where a page of a column-major array holds values of more rows than these, the next rows need it again.
bool takes_whole_pages(const NpyArray& array, uint64_t rows) { return rows * (array.dtype.bits / 8u) >= 64 << 10; }

class NumpyImport {
 public:
  NumpyImport(ImportTarget& target, const ImportProgress& progress, uint64_t all)
      : target_(target), progress_(progress), all_(all) {}

  void add(const std::string& name, std::span<const std::byte> file) {
    NpyArray array;
    try {
      array = npy_array(file);
    } catch (const sdk::Error& problem) {
      throw sdk::Error(problem.status(), "its array " + in_quotes(name) + " " + problem.what());
    }
    if (array.dtype.bits == 0 || array.values.empty()) {
      const std::string type = array.type.empty() ? "records" : printable(array.type, 20);
      imported_.left_out.push_back(name + " (" + (array.dtype.bits == 0 ? type : "empty") + ")");
      return;
    }
    const uint32_t id = target_.dataset({name, array.stored_dtype(), array.shape});
    const uint64_t row_bytes = array.row_values() * (array.stored_dtype().bits / 8u),
                   at_once = std::max<uint64_t>(1, npy_block_bytes / row_bytes);
    const uint64_t stored_bytes = array.row_values() * (array.dtype.bits / 8u);
    block_.resize(std::min(at_once, array.shape[0]) * row_bytes);
    for (uint64_t row = 0; row < array.shape[0]; row += at_once) {
      const uint64_t rows = std::min(at_once, array.shape[0] - row);
      array.read_rows(row, rows, block_.data());
      target_.append(id, block_, rows);
      if (!array.column_major) drop_pages(array.values.subspan(row * stored_bytes, rows * stored_bytes));
      if (array.column_major && takes_whole_pages(array, rows)) drop_pages(array.values);
      done_ += rows * stored_bytes;
      progress_(done_, std::max(all_, done_));
    }
  }

  Imported done() const {
    if (target_.datasets() == 0) throw sdk::Error(HR_DATA_CORRUPT, "it has no array of numbers");
    return {target_.datasets(), imported_.left_out};
  }

 private:
  ImportTarget& target_;
  const ImportProgress& progress_;
  uint64_t all_ = 0, done_ = 0;
  std::vector<std::byte> block_;
  Imported imported_;
};

}  // namespace

Imported import_numpy(const std::filesystem::path& from, const std::filesystem::path& to, ImportTarget& target,
                      const ImportProgress& progress) {
  const MappedFile file(from, "data convert");
  const std::span<const std::byte> bytes = file.bytes();
  // As the content says, whatever its name is.
  if (bytes.size() >= 6 && std::memcmp(bytes.data(), "\x93NUMPY", 6) == 0) {
    NumpyImport import(target, progress, bytes.size());
    import.add("array", bytes);
    return import.done();
  }
  std::map<std::string, ZipEntry> entries;
  try {
    entries = read_zip(bytes, /*may_be_deflated=*/true);
  } catch (const BadTorchFile& problem) {
    throw sdk::Error(HR_DATA_CORRUPT, std::string("as an archive of numpy's it ") + problem.what());
  }
  uint64_t all = 0;
  for (const auto& [name, entry] : entries) all += entry.bytes;
  NumpyImport import(target, progress, all);
  for (const auto& [name, entry] : entries) {
    const UnpackedEntry unpacked(name, entry, to);
    import.add(name.ends_with(".npy") ? name.substr(0, name.size() - 4) : name, unpacked.bytes());
  }
  return import.done();
}

}  // namespace headroom
