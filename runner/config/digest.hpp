// A short name for content: equal bytes give equal digests. For identities and caches, not for security.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom {

// 128-bit FNV-1a (Fowler, Noll, Vo) as 32 hexadecimal digits.
class Digest {
 public:
  Digest& add(std::string_view bytes);  // order matters; lengths are mixed in, so "ab" + "c" differs from "a" + "bc"
  std::string hex() const;

 private:
  uint64_t high_ = 0x6C62272E07BB0142u, low_ = 0x62B821756295C58Du;
};

}  // namespace headroom
