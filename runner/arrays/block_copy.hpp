// Copies values and checks on the way that they are finite. The check costs nothing while the copy waits for memory; a
// second pass over a batch would cost as much as the copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headroom {

// Whether copied values are checked for NaN and infinity. The number is the size of a value in bytes.
enum class FiniteCheck : uint8_t { none = 0, float32 = 4, float64 = 8 };

// Copies `bytes` bytes, all of them even where a value is not finite. Returns false where one is not. With a check,
// `bytes` is a multiple of its value size. `past_caches` uses non-temporal stores: for a box that is larger than the
// caches, so that the copy evicts nothing and does not first read the memory it overwrites. Pointers need no alignment.
// [any]
bool copy_block(std::byte* to, const std::byte* from, uint64_t bytes, FiniteCheck check, bool past_caches);

// The same check of values where they lie; true for FiniteCheck::none. [any]
bool all_finite(const std::byte* values, uint64_t bytes, FiniteCheck check);

// Accumulates the check over registers of values: see() each of them, then ask finite().
template <FiniteCheck of>
class FiniteWatch {
 public:
  using Bits = std::conditional_t<of == FiniteCheck::float32, uint32_t, uint64_t>;
  typedef Bits Register __attribute__((vector_size(16)));  // "using" takes no dependent type here

  // Infinity and NaN have all exponent bits set: adding the lowest of them carries into the sign bit.
  void see(Register values) { carried_ |= (values & exponent) + lowest; }
  bool finite() const {
    Bits all = 0;
    for (size_t i = 0; i < sizeof(Register) / sizeof(Bits); ++i) all |= carried_[i];
    return (all & sign) == 0;
  }

  static constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1), lowest = Bits{1} << (sizeof(Bits) == 4 ? 23 : 52);
  static constexpr Bits exponent = sign - lowest;

 private:
  Register carried_{};
};

// Boxes of at least this size are copied with past_caches.
inline constexpr uint64_t past_caches_bytes = 4 << 20;

}  // namespace headroom
