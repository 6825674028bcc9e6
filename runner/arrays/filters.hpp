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
  uint32_t element_bytes = 0;  // of shuffle alone
};

inline constexpr uint32_t lzf_filter_id = 32000;

// The filter with HDF5's registered number `id`; nullopt for one that only libhdf5 or a plugin of it can undo.
std::optional<FilterKind> filter_kind(int id);

// Whether decode_chunk() can undo this pipeline: at most 32 filters, and at most one compressor, because only then is
// the size before every filter known.
bool decodable(std::span<const ChunkFilter> filters);

// The stored bytes of a chunk are damaged. what() says how, as the end of a sentence: "its checksum is wrong".
struct DamagedChunk : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The bytes decode, but to another size than a chunk has. libhdf5 1.10 does not check this and returns uninitialised
// memory.
struct WrongChunkSize : DamagedChunk {
  using DamagedChunk::DamagedChunk;
};

// Undoes the filters, the last one first, skipping those whose bit is set in `mask` (as HDF5's filter mask). Fills all
// of `chunk`, or throws DamagedChunk where `stored` does not give exactly that many bytes. `filters` are in the order
// they were applied. REQUIRES decodable(filters). [any]
void decode_chunk(std::span<const ChunkFilter> filters, uint32_t mask, std::span<const std::byte> stored,
                  std::span<std::byte> chunk);

// Single filters. Each fills all of `to`, whose size is that of the decoded bytes, or throws DamagedChunk. unshuffle()
// writes from.size() bytes and cannot fail. [any]
void inflate_zlib(std::span<const std::byte> from, std::span<std::byte> to);
void inflate_lzf(std::span<const std::byte> from, std::span<std::byte> to);
void unshuffle(std::span<const std::byte> from, uint32_t element_bytes, std::byte* to);

// The Fletcher-32 checksum of `bytes` as HDF5 computes it: over big-endian 16-bit words.
uint32_t fletcher32(std::span<const std::byte> bytes);

}  // namespace headroom
