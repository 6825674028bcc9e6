#include "record/crc32c.hpp"

#include <array>
#include <bit>

namespace headroom {
namespace {

// What each value of a byte contributes, in the reflected form: the lowest bit comes first.
constexpr std::array<uint32_t, 256> make_table() {
  constexpr uint32_t reversed_polynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest & 1 ? rest >> 1 ^ reversed_polynomial : rest >> 1;
    table[byte] = rest;
  }
  return table;
}

constexpr auto table = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t rest = ~uint32_t{0};
  for (char c : bytes) rest = rest >> 8 ^ table[(rest ^ static_cast<unsigned char>(c)) & 0xff];
  return ~rest;
}

// TFRecord masks its checksums, because a checksum over data that holds checksums is a weak one.
uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8u; }

}  // namespace headroom
