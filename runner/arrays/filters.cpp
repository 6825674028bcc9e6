#include "arrays/filters.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <libdeflate.h>
#include <memory>
#include <new>
#include <string>

#include "arrays/thread_buffer.hpp"

namespace headroom {

namespace {

constexpr size_t most_filters = 32;       // bits of a filter mask
constexpr uint64_t checksum_bytes = 4;    // fletcher32's
constexpr uint64_t unknown_size = ~0ull;  // of what a compressor made

bool compresses(FilterKind kind) { return kind == FilterKind::deflate || kind == FilterKind::lzf; }

uint32_t swapped_in_pairs(uint32_t sum) { return (sum & 0x00FF00FFu) << 8 | (sum & 0xFF00FF00u) >> 8; }

std::span<const std::byte> without_checksum(std::span<const std::byte> from) {
  if (from.size() < checksum_bytes) throw DamagedChunk("it is shorter than its checksum");
  const auto bytes = from.first(from.size() - checksum_bytes);
  uint32_t stored;
  std::memcpy(&stored, from.data() + bytes.size(), sizeof stored);
  const uint32_t sum = fletcher32(bytes);
  // HDF5 1.6.2 and older wrote the halves' bytes the other way round, and libhdf5 takes both.
  if (stored != sum && stored != swapped_in_pairs(sum)) throw DamagedChunk("its checksum is wrong");
  return bytes;
}

// Sizes before each filter, where those whose bit in `mask` is clear are applied to `bytes` bytes.
std::array<uint64_t, most_filters + 1> sizes_before(std::span<const ChunkFilter> filters, uint32_t mask,
                                                    uint64_t bytes) {
  std::array<uint64_t, most_filters + 1> sizes{};
  sizes[0] = bytes;
  for (size_t i = 0; i < filters.size(); ++i) {
    const bool skipped = (mask >> i & 1) != 0;
    sizes[i + 1] = skipped ? sizes[i] : compresses(filters[i].kind) ? unknown_size : sizes[i];
    if (!skipped && filters[i].kind == FilterKind::fletcher32 && sizes[i] != unknown_size)
      sizes[i + 1] += checksum_bytes;
  }
  return sizes;
}

}  // namespace

// H5Z_FILTER_DEFLATE, H5Z_FILTER_SHUFFLE and H5Z_FILTER_FLETCHER32 of H5Zpublic.h, which this file does not include.
std::optional<FilterKind> filter_kind(int id) {
  switch (id) {
    case 1:
      return FilterKind::deflate;
    case 2:
      return FilterKind::shuffle;
    case 3:
      return FilterKind::fletcher32;
    case lzf_filter_id:
      return FilterKind::lzf;
    default:
      return std::nullopt;
  }
}

bool decodable(std::span<const ChunkFilter> filters) {
  return filters.size() <= most_filters &&
         std::count_if(filters.begin(), filters.end(), [](const auto& f) { return compresses(f.kind); }) <= 1;
}

void decode_chunk(std::span<const ChunkFilter> filters, uint32_t mask, std::span<const std::byte> stored,
                  std::span<std::byte> chunk) {
  // Each filter reads from one buffer and writes to the other; the last one writes to `chunk`, which saves a copy.
  thread_local std::array<ThreadBuffer, 2> buffers;
  std::array<ThreadBuffer::Use, 2> used;
  const auto sizes = sizes_before(filters, mask, chunk.size());
  size_t first = 0;  // the filter that is undone last: it writes into `chunk` itself
  while (first < filters.size() && (mask >> first & 1) != 0) ++first;

  std::span<const std::byte> bytes = stored;
  size_t buffer = 0;
  for (size_t i = filters.size(); i-- > first;) {
    if ((mask >> i & 1) != 0) continue;
    const ChunkFilter& filter = filters[i];
    if (filter.kind == FilterKind::fletcher32) {
      bytes = without_checksum(bytes);
      continue;
    }
    const uint64_t size = compresses(filter.kind) ? sizes[i] : bytes.size();
    std::byte* to = chunk.data();
    if (i != first || size != chunk.size()) {
      used[buffer] = {};
      used[buffer] = buffers[buffer].take(size);
      to = used[buffer].data();
    }
    buffer = 1 - buffer;
    if (filter.kind == FilterKind::shuffle) {
      unshuffle(bytes, filter.element_bytes, to);
    } else {
      (filter.kind == FilterKind::deflate ? inflate_zlib : inflate_lzf)(bytes, {to, size});
    }
    bytes = {to, size};
  }
  if (bytes.size() != chunk.size()) {
    throw WrongChunkSize("it holds " + std::to_string(bytes.size()) + " bytes instead of " +
                         std::to_string(chunk.size()));
  }
  if (bytes.data() != chunk.data()) std::memcpy(chunk.data(), bytes.data(), bytes.size());
}

void inflate_zlib(std::span<const std::byte> from, std::span<std::byte> to) {
  struct Free {
    void operator()(libdeflate_decompressor* inflater) const { libdeflate_free_decompressor(inflater); }
  };
  thread_local const std::unique_ptr<libdeflate_decompressor, Free> inflater(libdeflate_alloc_decompressor());
  if (inflater == nullptr) throw std::bad_alloc();
  size_t read = 0;
  // Without a place for the size that comes out, libdeflate fails unless the output fills `to` exactly.
  const libdeflate_result result =
      libdeflate_zlib_decompress_ex(inflater.get(), from.data(), from.size(), to.data(), to.size(), &read, nullptr);
  if (result == LIBDEFLATE_SUCCESS) return;
  if (result == LIBDEFLATE_BAD_DATA) throw DamagedChunk("it does not inflate");
  throw WrongChunkSize("it inflates to another size");
}

// LibLZF's format. A control byte below 32 begins a run of literals. Any other begins a reference to earlier output: 3
// bits of length, more in a further byte where they are all set, and 13 bits of distance. Damaged bytes may claim
// anything, so each length is checked.
void inflate_lzf(std::span<const std::byte> from, std::span<std::byte> to) {
  const auto broken = [] { return DamagedChunk("its LZF data are broken"); };
  size_t in = 0, out = 0;
  while (in < from.size()) {
    const auto control = std::to_integer<size_t>(from[in++]);
    if (control < 32) {  // bytes as they are
      const size_t length = control + 1;
      if (length > from.size() - in || length > to.size() - out) throw broken();
      std::memcpy(to.data() + out, from.data() + in, length);
      in += length;
      out += length;
      continue;
    }
    size_t length = control >> 5;  // bytes that stand further back
    if (length == 7) {
      if (in == from.size()) throw broken();
      length += std::to_integer<size_t>(from[in++]);
    }
    if (in == from.size()) throw broken();
    const size_t back = ((control & 31) << 8) + std::to_integer<size_t>(from[in++]) + 1;
    length += 2;
    if (back > out || length > to.size() - out) throw broken();
    for (const size_t end = out + length; out < end; ++out) to[out] = to[out - back];  // may overlap
  }
  if (out != to.size()) throw WrongChunkSize("its LZF data give another size");
}

uint32_t fletcher32(std::span<const std::byte> bytes) {
  constexpr size_t words_at_once = 1 << 20;  // before a 64-bit sum could overflow
  // Adds the carries back in: the sum modulo 65535, as one's complement arithmetic has it.
  const auto fold = [](uint64_t sum) {
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    return sum;
  };
  uint64_t sum1 = 0, sum2 = 0;
  const size_t words = bytes.size() / 2;
  for (size_t at = 0; at < words;) {
    for (const size_t end = std::min(words, at + words_at_once); at < end; ++at) {
      uint16_t word;
      std::memcpy(&word, bytes.data() + 2 * at, sizeof word);
      sum1 += __builtin_bswap16(word);
      sum2 += sum1;
    }
    sum1 = fold(sum1);
    sum2 = fold(sum2);
  }
  // An odd last byte is the high half of a word.
  if (bytes.size() % 2 != 0) {
    sum1 = fold(sum1 + (std::to_integer<uint64_t>(bytes.back()) << 8));
    sum2 = fold(sum2 + sum1);
  }
  return static_cast<uint32_t>(sum2 << 16 | sum1);
}

// Undoes the shuffle filter: byte b of element e is at b * elements + e.
namespace {

using Bytes = unsigned char __attribute__((vector_size(16)));
constexpr size_t lanes = sizeof(Bytes);
constexpr size_t elements_at_once = 256;  // of one row of planes, so that what is written stays in the nearest cache

// a0 b0 a1 b1 ... of the lower (0) or the upper (1) half of both.
template <size_t half>
Bytes interleave(Bytes a, Bytes b) {
  constexpr int h = half * lanes / 2;
  return __builtin_shufflevector(a, b, h, h + 16, h + 1, h + 17, h + 2, h + 18, h + 3, h + 19, h + 4, h + 20, h + 5,
                                 h + 21, h + 6, h + 22, h + 7, h + 23);
}

// `planes` neighbouring bytes of 16 elements; `planes` is a power of two up to 16. Each round halves the distance
// between bytes that belong together.
template <size_t planes>
void transpose(const std::byte* from, size_t plane_stride, std::byte* to, size_t element_stride) {
  std::array<Bytes, planes> rows, next;
  for (size_t p = 0; p < planes; ++p) std::memcpy(&rows[p], from + p * plane_stride, lanes);
  for (size_t round = 1; round < planes; round *= 2) {
    for (size_t p = 0; p < planes / 2; ++p) {
      next[2 * p] = interleave<0>(rows[p], rows[p + planes / 2]);
      next[2 * p + 1] = interleave<1>(rows[p], rows[p + planes / 2]);
    }
    rows = next;
  }
  if (element_stride == planes) {
    std::memcpy(to, rows.data(), sizeof rows);
    return;
  }
  std::array<std::byte, planes * lanes> packed;
  std::memcpy(packed.data(), rows.data(), sizeof rows);
  for (size_t e = 0; e < lanes; ++e) std::memcpy(to + e * element_stride, packed.data() + e * planes, planes);
}

// Elements [first, last) of `planes` neighbouring bytes.
template <size_t planes>
void part(const std::byte* from, size_t elements, std::byte* to, size_t element_bytes, size_t first, size_t last) {
  size_t e = first;
  for (; e + lanes <= last; e += lanes) transpose<planes>(from + e, elements, to + e * element_bytes, element_bytes);
  for (; e < last; ++e) {
    for (size_t p = 0; p < planes; ++p) to[e * element_bytes + p] = from[p * elements + e];
  }
}

}  // namespace

void unshuffle(std::span<const std::byte> from, uint32_t element_bytes, std::byte* to) {
  const size_t width = element_bytes;
  const size_t elements = width > 1 ? from.size() / width : 0;
  // HDF5 does not shuffle elements of one byte, nor a single element.
  if (elements <= 1) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  for (size_t first = 0; first < elements; first += elements_at_once) {
    const size_t last = first + elements_at_once < elements ? first + elements_at_once : elements;
    // As many planes at a time as a register has bytes, then smaller powers of two for the rest of the element.
    for (size_t byte = 0; byte < width;) {
      const std::byte* planes = from.data() + byte * elements;
      const size_t left = width - byte;
      if (left >= 16) {
        part<16>(planes, elements, to + byte, width, first, last);
        byte += 16;
      } else if (left >= 8) {
        part<8>(planes, elements, to + byte, width, first, last);
        byte += 8;
      } else if (left >= 4) {
        part<4>(planes, elements, to + byte, width, first, last);
        byte += 4;
      } else if (left >= 2) {
        part<2>(planes, elements, to + byte, width, first, last);
        byte += 2;
      } else {
        part<1>(planes, elements, to + byte, width, first, last);
        byte += 1;
      }
    }
  }
  // HDF5 leaves what follows the last whole element as it is.
  const size_t whole = elements * width;
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

}  // namespace headroom
