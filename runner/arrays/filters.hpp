// HDF5's chunk filters undone without libhdf5: deflate (libdeflate), shuffle, fletcher32 and LZF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

namespace headroom {

enum class FilterKind : uint8_t { deflate, shuffle, fletcher32, lzf };

struct ChunkFilter {
  FilterKind kind{};
  uint32_t element_bytes = 0;  // shuffle
};

inline constexpr uint32_t lzf_filter_id = 32000;

// The filter behind a registered number; nothing for those that only libhdf5's plugins know.
std::optional<FilterKind> filter_kind(int id);

// Whether every size on the way back is known beforehand: at most one compressor, at most 32 filters.
bool decodable(std::span<const ChunkFilter> filters);

// what() says what is wrong with the stored bytes: "its checksum is wrong".
struct DamagedChunk : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The bytes are sound but are not a whole chunk. libhdf5 1.10 does not look, and reads memory that nobody wrote.
struct WrongChunkSize : DamagedChunk {
  using DamagedChunk::DamagedChunk;
};

// Undoes, last filter first, those whose bit in `mask` is clear. `chunk` is the decoded chunk, all of it; throws
// DamagedChunk when `stored` gives anything but that many bytes. REQUIRES decodable(filters). [any]
void decode_chunk(std::span<const ChunkFilter> filters, uint32_t mask, std::span<const std::byte> stored,
                  std::span<std::byte> chunk);

// The parts, each writing all of `to` (which has the right size) or throwing DamagedChunk.
void inflate_zlib(std::span<const std::byte> from, std::span<std::byte> to);
void inflate_lzf(std::span<const std::byte> from, std::span<std::byte> to);
void unshuffle(std::span<const std::byte> from, uint32_t element_bytes, std::byte* to);

// Of `bytes` as HDF5 computes it.
uint32_t fletcher32(std::span<const std::byte> bytes);

}  // namespace headroom
