#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

#include "arrays/hdf5_plan.hpp"
#include "arrays/open_files.hpp"
#include "memory/descriptor.hpp"

namespace headroom {

namespace {

constexpr uint64_t most_by_index = 1000;  // chunks; libhdf5 walks to the i-th from the first

// Fills the table; false for a chunk that cannot be where libhdf5 says it is.
class Table {
 public:
  Table(const ArrayLayout& layout, const std::vector<uint64_t>& grid) : layout_(layout), grid_(grid) {
    uint64_t cells = 1;
    for (const uint64_t extent : grid) cells *= extent;
    chunks_.resize(cells);
  }

  bool add(const uint64_t* origin, const StoredChunk& chunk) {
    uint64_t cell = 0;
    for (size_t axis = 0; axis < grid_.size(); ++axis) {
      if (origin[axis] % layout_.chunk[axis] != 0) return false;
      const uint64_t at = origin[axis] / layout_.chunk[axis];
      if (at >= grid_[axis]) return false;
      cell = cell * grid_[axis] + at;
    }
    // Two chunks in one cell: the index is damaged.
    if (chunks_[cell].bytes != 0) return false;
    chunks_[cell] = chunk;
    ++count_;
    return true;
  }
  uint64_t count() const { return count_; }
  std::vector<StoredChunk> take() { return std::move(chunks_); }

 private:
  const ArrayLayout& layout_;
  const std::vector<uint64_t>& grid_;
  std::vector<StoredChunk> chunks_;
  uint64_t count_ = 0;
};

bool list_by_index(hid_t dataset, hid_t space, uint64_t count, Table& table) {
  for (uint64_t i = 0; i < count; ++i) {
    hsize_t origin[H5S_MAX_RANK] = {}, bytes = 0;
    unsigned mask = 0;
    haddr_t address = HADDR_UNDEF;
    if (H5Dget_chunk_info(dataset, space, i, origin, &mask, &address, &bytes) < 0) return false;
    if (address == HADDR_UNDEF || bytes == 0 || bytes > UINT32_MAX) return false;
    const std::vector<uint64_t> at(origin, origin + H5S_MAX_RANK);
    if (!table.add(at.data(), {address, static_cast<uint32_t>(bytes), mask})) return false;
  }
  return true;
}

// Returns what `print` writes to standard output, which is redirected to memory meanwhile.
template <class Print>
std::optional<std::string> printed(Print&& print) {
  const Descriptor memory(memfd_create("chunks", MFD_CLOEXEC)), output(::dup(STDOUT_FILENO));
  if (memory.get() < 0 || std::fflush(stdout) != 0 || ::dup2(memory.get(), STDOUT_FILENO) < 0) return std::nullopt;
  const bool done = print() && std::fflush(stdout) == 0;
  if (output.get() >= 0) {
    ::dup2(output.get(), STDOUT_FILENO);
  } else {
    ::close(STDOUT_FILENO);
  }
  const off_t bytes = ::lseek(memory.get(), 0, SEEK_END);
  if (!done || bytes < 0) return std::nullopt;
  std::string text(static_cast<size_t>(bytes), '\0');
  read_exactly(memory.get(), 0, text.data(), text.size());
  return text;
}

// Takes the next number of `line` and whatever precedes it.
bool take_number(std::string_view& line, uint64_t& number, int base = 10) {
  const size_t at = line.find_first_of("0123456789");
  if (at == line.npos) return false;
  line.remove_prefix(at);
  const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), number, base);
  line.remove_prefix(static_cast<size_t>(end - line.data()));
  return problem == std::errc();
}

// "  0x00000000       40       3496 [10, 0]": filter mask, bytes, address and origin, the last number being the byte.
bool add_line(std::string_view line, size_t axes, Table& table) {
  line.remove_prefix(line.find("0x") + 2);
  uint64_t mask = 0, bytes = 0, address = 0, origin[H5S_MAX_RANK] = {};
  if (!take_number(line, mask, 16) || !take_number(line, bytes)) return false;
  const std::string_view before = line.substr(0, line.find('['));
  if (before.find("UNDEF") != before.npos) return true;
  if (!take_number(line, address)) return false;
  for (size_t axis = 0; axis < axes; ++axis) {
    if (!take_number(line, origin[axis])) return false;
  }
  if (bytes == 0 || bytes > UINT32_MAX || mask > UINT32_MAX) return false;
  return table.add(origin, {address, static_cast<uint32_t>(bytes), static_cast<uint32_t>(mask)});
}

// H5Ddebug() prints all chunks in one walk over the index.
bool list_by_print(hid_t dataset, size_t axes, Table& table) {
  const auto text = printed([&] { return H5Ddebug(dataset) >= 0; });
  if (!text) return false;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line = std::string_view(*text).substr(at, end - at);
    if (line.find("0x") != line.npos && !add_line(line, axes, table)) return false;
    at = end + 1;
  }
  return true;
}

// Whether each chunk is also found by its place, as H5Dread finds it. In a damaged index that may give another chunk
// than a walk over the index, or none.
bool found_by_lookup(hid_t dataset, const ArrayLayout& layout, const std::vector<uint64_t>& grid,
                     const std::vector<StoredChunk>& chunks) {
  for (size_t cell = 0; cell < chunks.size(); ++cell) {
    hsize_t origin[H5S_MAX_RANK] = {}, bytes = 0;
    size_t left = cell;
    for (size_t axis = grid.size(); axis-- > 0; left /= grid[axis])
      origin[axis] = left % grid[axis] * layout.chunk[axis];
    // libhdf5 1.10 fails for a chunk that was never written.
    if (H5Dget_chunk_storage_size(dataset, origin, &bytes) < 0) bytes = 0;
    // Without filters it tells the size that a chunk should have, not the one it has.
    if (layout.filtered ? bytes != chunks[cell].bytes : (bytes == 0) != (chunks[cell].bytes == 0)) return false;
  }
  return true;
}

}  // namespace

std::optional<std::vector<StoredChunk>> list_chunks(hid_t dataset, const ArrayLayout& layout,
                                                    const std::vector<uint64_t>& grid, bool may_print) {
  const Handle space(H5Dget_space(dataset));
  hsize_t count = 0;
  if (!space || H5Dget_num_chunks(dataset, space.get(), &count) < 0) return std::nullopt;
  std::vector<StoredChunk> chunks;
  Table printed_table(layout, grid), table(layout, grid);
  if (may_print && count > 0 &&  // libhdf5 1.10 crashes printing an index that was never made
      list_by_print(dataset, layout.shape.size(), printed_table) && printed_table.count() == count) {
    chunks = printed_table.take();
  } else if (count <= most_by_index && list_by_index(dataset, space.get(), count, table)) {
    chunks = table.take();
  } else {
    return std::nullopt;
  }
  if (!found_by_lookup(dataset, layout, grid, chunks)) return std::nullopt;
  return chunks;
}

}  // namespace headroom
