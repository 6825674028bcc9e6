// HDF5's shuffle filter undone: byte b of element e stands at b * elements + e.

#include <array>
#include <cstring>

#include "arrays/filters.hpp"

namespace headroom {

namespace {

using Bytes = unsigned char __attribute__((vector_size(16)));
constexpr size_t lanes = sizeof(Bytes);
constexpr size_t elements_at_once = 256;  // of one row of planes, so that what is written stays in the nearest cache

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
  if (elements <= 1) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  for (size_t first = 0; first < elements; first += elements_at_once) {
    const size_t last = first + elements_at_once < elements ? first + elements_at_once : elements;
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
  const size_t whole = elements * width;
  std::memcpy(to + whole, from.data() + whole, from.size() - whole);
}

}  // namespace headroom
