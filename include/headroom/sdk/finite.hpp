// Finds NaN and infinite values at the speed of memory.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace headroom::sdk {

// The index of the first value that is NaN or infinite; nullopt: all are finite. [any]
template <class Real>
std::optional<std::size_t> first_not_finite(std::span<const Real> values) {
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>);
  using Bits = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits lowest = Bits{1} << (sizeof(Real) == 4 ? 23 : 52), sign = Bits{1} << (8 * sizeof(Real) - 1);
  constexpr Bits exponent = sign - lowest;
  constexpr std::size_t block = 512;
  std::size_t at = 0;
  for (; values.size() - at >= block; at += block) {
    // An exponent of ones only (NaN, infinity) carries into the sign bit. Without a branch the loop becomes vector
    // code.
    Bits carried = 0;
    for (std::size_t i = 0; i < block; ++i) carried |= (std::bit_cast<Bits>(values[at + i]) & exponent) + lowest;
    if ((carried & sign) != 0) break;
  }
  const auto found = std::find_if(values.begin() + static_cast<std::ptrdiff_t>(at), values.end(),
                                  [](Real value) { return !std::isfinite(value); });
  if (found == values.end()) return std::nullopt;
  return static_cast<std::size_t>(found - values.begin());
}

}  // namespace headroom::sdk
