// Keyed random numbers in C++: pure functions of (key, site, i), [any]. A site is one place in the code that draws;
// give each its own name.
//   const double jitter = uniform(request.key(i), "jitter"_site);
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string_view>

#include "headroom/random.h"

namespace headroom::sdk {

// FNV-1a of the name.
constexpr uint64_t site(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

// The i-th site derived from another, for layers or axes that one piece of code makes in a loop.
constexpr uint64_t site(uint64_t base, uint64_t i) { return (base ^ (i + 0x9E3779B97F4A7C15u)) * 0x100000001B3u; }

inline namespace literals {
constexpr uint64_t operator""_site(const char* name, std::size_t length) {
  return site(std::string_view(name, length));
}
}  // namespace literals

// In [0, 1).
inline double uniform(uint64_t key, uint64_t site, uint64_t i = 0) { return hr_uniform_f64(hr_philox64(key, site, i)); }

// An integer in [0, bound), bound > 0.
inline uint64_t below(uint64_t key, uint64_t site, uint64_t bound, uint64_t i = 0) {
  return static_cast<uint64_t>(uniform(key, site, i) * static_cast<double>(bound));
}

// Standard normal.
inline double normal(uint64_t key, uint64_t site, uint64_t i = 0) {
  uint32_t words[4];
  hr_philox(key, site, i, words);
  const double radius = std::sqrt(-2.0 * std::log((words[0] + 0.5) * 0x1p-32));
  return radius * std::cos(2.0 * std::numbers::pi * (words[1] * 0x1p-32));
}

}  // namespace headroom::sdk
