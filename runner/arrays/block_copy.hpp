// Copies values on their way from a file into a slot, and looks at them while they pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace headroom {

// What is looked for in the values that pass: NaN and infinity among reals of this many bytes, or nothing.
enum class Look : uint8_t { none = 0, float32 = 4, float64 = 8 };

// Copies `bytes`, whole values where they are looked at; false where one of them is not finite. `past_caches`: part of
// a box that no cache would hold until it is used; then nothing else is pushed out of them, and no memory read that is
// only written.
bool copy_block(std::byte* to, const std::byte* from, uint64_t bytes, Look look, bool past_caches);

// Looks at values where they lie. No pointer needs an alignment, here and above.
bool all_finite(const std::byte* values, uint64_t bytes, Look look);

// Watches registers of reals that pass through its hands.
template <Look of>
class FiniteWatch {
 public:
  using Bits = std::conditional_t<of == Look::float32, uint32_t, uint64_t>;
  typedef Bits Register __attribute__((vector_size(16)));  // "using" takes no dependent type here

  // An exponent whose bits are all set, of infinity and NaN, runs over into the sign.
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

// Boxes from this size on go past the caches.
inline constexpr uint64_t past_caches_bytes = 4 << 20;

}  // namespace headroom
