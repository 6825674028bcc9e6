#include "arrays/direct_read.hpp"

#include "arrays/open_files.hpp"
#include "arrays/read_hooks.hpp"

namespace headroom {

namespace {

constexpr uint64_t scratch_block_bytes = 4 << 20;    // most of one read that also takes what lies between wanted rows
constexpr uint64_t scratch_piece_bytes = 256 << 10;  // most of one read of a run: it is converted out of the cache
constexpr uint64_t shared_bytes = 2 << 20;           // least of a part that another thread may take
// A gap between rows is read rather than skipped where that is cheaper than another pread() or another mincore().
constexpr uint64_t pread_bytes = 2 << 10;
constexpr uint64_t mincore_bytes = 4 << 10;

void read_or_throw(const FileBytes& file, uint64_t offset, void* to, uint64_t bytes) {
  try {
    read_exactly(file.descriptor, offset, to, bytes);
  } catch (const ReadFailure& failure) {
    throw BadPlace{.code = failure.code, .ends_early = failure.code == 0};
  }
}

// Of a row at most one page, in steps of a cache line (64 bytes).
void prefetch(const std::byte* row, uint64_t bytes) {
  for (uint64_t at = 0; at < std::min<uint64_t>(bytes, 4096); at += 64) __builtin_prefetch(row + at);
}

// Reads a region of a row-major block of records that lies in a file as it is: a contiguous dataset, or a raw chunk.
class FileBlock {
 public:
  FileBlock(const FileBytes& file, uint64_t offset, const Region& region, RecordSink& sink)
      : file_(file), offset_(offset), region_(region), sink_(sink), record_(sink.record_bytes()) {}

  void read() const { read(0, region_.from, region_.to); }

 private:
  void read(size_t axis, uint64_t from, uint64_t to) const {
    if (axis + 1 == region_.axes) return read_run(from, to, region_.count[axis]);
    // Of these axes: runs of neighbours, wanted records, and records from the first wanted one to the last.
    uint64_t runs = 1, wanted = 1, span = 1;
    for (size_t a = axis; a < region_.axes; ++a) {
      if (a + 1 < region_.axes) runs *= region_.count[a];
      wanted *= region_.count[a];
      span += (region_.count[a] - 1) * region_.from_stride[a];
    }
    const uint64_t row_bytes = region_.from_stride[axis] * record_;
    if ((span - wanted) * record_ <= runs * (file_.map.is_there() ? mincore_bytes : pread_bytes) &&
        row_bytes <= scratch_block_bytes)
      return read_rows(axis, from, to, scratch_block_bytes / row_bytes);
    for (uint64_t i = 0; i < region_.count[axis]; ++i)
      read(axis + 1, from + i * region_.from_stride[axis], to + i * region_.to_stride[axis]);
  }

  // Reads rows together with the gaps between them, at most `most` rows of the axis at a time.
  void read_rows(size_t axis, uint64_t from, uint64_t to, uint64_t most) const {
    Region rows = region_;
    for (uint64_t done = 0; done < region_.count[axis]; done += most) {
      rows.count[axis] = std::min(most, region_.count[axis] - done);
      uint64_t span = 1;
      for (size_t a = axis; a < rows.axes; ++a) span += (rows.count[a] - 1) * rows.from_stride[a];
      const uint64_t first = from + done * rows.from_stride[axis];
      const Rows block{*this, rows, axis, to + done * rows.to_stride[axis]};
      if (const std::byte* records = file_.map.at(offset_ + first * record_, span * record_)) {
        put_mapped([&block, records] { block.put(records); });
      } else {
        block.put(read_records(first, span).data());
      }
    }
  }

  void read_run(uint64_t from, uint64_t to, uint64_t count) const {
    if (read_from_map(from, to, count)) return;
    std::byte* const place = sink_.place_of(to);
    // The kernel copies straight to where the records are wanted.
    if (place != nullptr && !sink_.prefers_put())
      return read_or_throw(file_, offset_ + from * record_, place, count * record_);
    const uint64_t step = std::max<uint64_t>(1, scratch_piece_bytes / record_);
    for (uint64_t done = 0; done < count; done += step) {
      const uint64_t records = std::min(step, count - done);
      sink_.put(read_records(from + done, records).data(), to + done, records);
    }
  }

  // The wanted rows in a block of records that was read with its gaps.
  struct Rows {
    const FileBlock& block;
    const Region& rows;
    size_t axis;
    uint64_t to;
    void put(const std::byte* records) const {
      // read() comes here with two axes or more, so rows have a distance. The last row has none behind it, which does
      // no harm: a prefetch never faults.
      const uint64_t step = rows.from_stride[rows.axes - 2] * block.record_;
      each_run(rows, axis, 0, to, [&](uint64_t at, uint64_t index, uint64_t count) {
        const std::byte* row = records + at * block.record_;
        prefetch(row + step, count * block.record_);
        block.sink_.put(row, index, count);
      });
    }
  };

  // Puts the records straight out of the mapping, where all of them are in the page cache.
  bool read_from_map(uint64_t from, uint64_t to, uint64_t count) const {
    const std::byte* records = file_.map.at(offset_ + from * record_, count * record_);
    if (records != nullptr) put_mapped([this, records, to, count] { sink_.put(records, to, count); });
    return records != nullptr;
  }

  // `put` may be left by siglongjmp(): RecordSink::put() has no destructors to run, and takes no lock.
  template <class Put>
  static void put_mapped(const Put& put) {
    if (!read_mapped([](const void* context) { (*static_cast<const Put*>(context))(); }, &put))
      throw BadPlace{.ends_early = true};
  }

  ThreadBuffer::Use read_records(uint64_t from, uint64_t count) const {
    thread_local ThreadBuffer buffer;
    ThreadBuffer::Use records = buffer.take(count * record_);
    read_or_throw(file_, offset_ + from * record_, records.data(), records.size());
    return records;
  }

  const FileBytes& file_;
  uint64_t offset_;
  const Region& region_;
  RecordSink& sink_;
  uint64_t record_;
};

// Reads chunks of one box, one after the other.
class ChunkReader {
 public:
  ChunkReader(const ArrayPlan& plan, const FileBytes& file, RecordSink& sink, const FetchChunk& fetch)
      : plan_(plan), file_(file), sink_(sink), fetch_(fetch) {}

  void read(const Coordinates& origin, uint64_t cell, const Region& region) const {
    // Of a chunk that no filter changed only the region is read. Others are decoded whole, and kept.
    if (plan_.lane == Lane::chunk_table) {
      const StoredChunk& stored = plan_.chunks[cell];
      if (stored.bytes == 0) return fill(region);
      if (is_raw(stored)) return FileBlock(file_, stored.offset, region, sink_).read();
    }
    const auto decode_it = [&](std::span<std::byte> bytes) { decode(origin, cell, bytes); };
    // std::function holds a std::ref() without an allocation.
    const auto chunk = file_.chunks.get({plan_.id, cell}, plan_.layout.chunk_bytes(), std::ref(decode_it));
    const std::byte* records = chunk->bytes().data();
    const uint64_t record = sink_.record_bytes();
    each_run(region, 0, region.from, region.to,
             [&](uint64_t from, uint64_t to, uint64_t count) { sink_.put(records + from * record, to, count); });
  }

 private:
  bool is_raw(const StoredChunk& stored) const {
    // A bit of the mask says that its filter was skipped for this chunk.
    const uint64_t used = ~uint64_t{stored.filter_mask} & ((uint64_t{1} << plan_.filters.size()) - 1);
    return used == 0 && stored.bytes == plan_.layout.chunk_bytes();
  }

  void decode(const Coordinates& origin, uint64_t cell, std::span<std::byte> chunk) const {
    try {
      if (plan_.lane == Lane::chunk_table) {
        thread_local ThreadBuffer buffer;
        const StoredChunk& stored = plan_.chunks[cell];
        const ThreadBuffer::Use bytes = buffer.take(stored.bytes);
        read_or_throw(file_, stored.offset, bytes.data(), bytes.size());
        decode_chunk(plan_.filters, stored.filter_mask, {bytes.data(), bytes.size()}, chunk);
        return;
      }
      uint32_t mask = 0;
      const ThreadBuffer::Use bytes = fetch_(origin, mask);
      if (bytes.size() > 0) {
        decode_chunk(plan_.filters, mask, {bytes.data(), bytes.size()}, chunk);
        return;
      }
    } catch (const DamagedChunk& damage) {
      throw BadPlace{.damage = damage.what()};
    }
    // The chunk was never written.
    for (uint64_t at = 0; at < chunk.size(); at += plan_.fill.size())
      std::copy(plan_.fill.begin(), plan_.fill.end(), chunk.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void fill(const Region& region) const {
    each_run(region, 0, region.from, region.to, [&](uint64_t, uint64_t to, uint64_t count) {
      for (uint64_t i = 0; i < count; ++i) sink_.put(plan_.fill.data(), to + i, 1);
    });
  }

  const ArrayPlan& plan_;
  const FileBytes& file_;
  RecordSink& sink_;
  const FetchChunk& fetch_;
};

// Into how many pieces a box of `bytes` is cut for threads to share, along `length` rows or cells. 1: it is not shared.
size_t pieces_of(uint64_t length, uint64_t bytes) {
  if (bytes < 4 * shared_bytes || !work_is_shared()) return 1;
  return static_cast<size_t>(std::min(length, bytes / shared_bytes));
}

// read(first, end, sink) for even pieces of [0, length), each with a sink of its own where they are many.
template <class Read>
void read_pieces(size_t pieces, uint64_t length, RecordSink& sink, Read&& read) {
  if (pieces == 1) return read(uint64_t{0}, length, sink);
  std::vector<RecordSink> sinks(pieces, sink);
  in_parts(pieces, [&](size_t i) { read(i * length / pieces, (i + 1) * length / pieces, sinks[i]); });
  for (const RecordSink& each : sinks) sink.add(each);
}

// The grid's cells from `first` to before `end`.
void read_cells(const ChunkReader& reader, const ArrayPlan& plan, std::span<const uint64_t> start,
                std::span<const uint64_t> count, const Coordinates& first, const Coordinates& end) {
  const std::vector<uint64_t>& extent = plan.layout.chunk;
  const size_t axes = count.size();
  each_cell(first, end, axes, [&](const Coordinates& at) {
    Coordinates origin{};
    uint64_t cell = 0;
    for (size_t axis = 0; axis < axes; ++axis) {
      origin[axis] = at[axis] * extent[axis];
      cell = cell * plan.grid[axis] + at[axis];
    }
    try {
      reader.read(origin, cell, region_of(start, count, {origin.data(), axes}, extent));
    } catch (BadPlace& bad) {
      bad.in_chunk = true;
      bad.chunk_origin = origin;
      throw;
    }
  });
}

}  // namespace

void read_contiguous(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                     std::span<const uint64_t> count, RecordSink& sink) {
  const Coordinates origin{};
  const Region region = region_of(start, count, {origin.data(), count.size()}, plan.layout.shape);
  const size_t pieces = pieces_of(region.count[0], product(count) * sink.record_bytes());
  read_pieces(pieces, region.count[0], sink, [&](uint64_t begin, uint64_t end, RecordSink& of_piece) {
    Region piece = region;
    piece.count[0] = end - begin;
    piece.from += begin * region.from_stride[0];
    piece.to += begin * region.to_stride[0];
    FileBlock(file, plan.offset, piece, of_piece).read();
  });
}

void read_chunks(const ArrayPlan& plan, const FileBytes& file, std::span<const uint64_t> start,
                 std::span<const uint64_t> count, RecordSink& sink, const FetchChunk& fetch) {
  const std::vector<uint64_t>& extent = plan.layout.chunk;
  const size_t axes = count.size();
  Coordinates first{}, end{};
  for (size_t axis = 0; axis < axes; ++axis) {
    first[axis] = start[axis] / extent[axis];
    end[axis] = (start[axis] + count[axis] - 1) / extent[axis] + 1;
  }
  size_t shared = 0;  // the first axis with more than one cell: threads share along it
  while (shared + 1 < axes && end[shared] - first[shared] == 1) ++shared;
  const uint64_t cells = end[shared] - first[shared];
  const size_t pieces = pieces_of(cells, product(count) * sink.record_bytes());
  read_pieces(pieces, cells, sink, [&](uint64_t piece_first, uint64_t piece_end, RecordSink& of_piece) {
    Coordinates from = first, to = end;
    from[shared] = first[shared] + piece_first;
    to[shared] = first[shared] + piece_end;
    read_cells(ChunkReader(plan, file, of_piece, fetch), plan, start, count, from, to);
  });
}

}  // namespace headroom
