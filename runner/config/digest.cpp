#include "config/digest.hpp"

#include <array>
#include <cstdio>

namespace headroom {

namespace {

__extension__ using Wide = unsigned __int128;
// 2^88 + 2^8 + 0x3B.
constexpr Wide prime = (static_cast<Wide>(0x1000000) << 64) | 0x13Bu;

}  // namespace

Digest& Digest::add(std::string_view bytes) {
  Wide state = (static_cast<Wide>(high_) << 64) | low_;
  const auto mix = [&](unsigned char byte) { state = (state ^ byte) * prime; };
  // The length comes first: "ab" and "c" must differ from "a" and "bc".
  for (uint64_t length = bytes.size(), i = 0; i < 8; ++i) mix(static_cast<unsigned char>(length >> (8 * i)));
  for (const char byte : bytes) mix(static_cast<unsigned char>(byte));
  high_ = static_cast<uint64_t>(state >> 64);
  low_ = static_cast<uint64_t>(state);
  return *this;
}

std::string Digest::hex() const {
  std::array<char, 33> text{};
  std::snprintf(text.data(), text.size(), "%016llx%016llx", static_cast<unsigned long long>(high_),
                static_cast<unsigned long long>(low_));
  return text.data();
}

}  // namespace headroom
