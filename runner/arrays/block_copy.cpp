#include "arrays/block_copy.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "headroom/sdk/cpu_kernel.hpp"

namespace headroom {

namespace {

template <FiniteCheck check>
bool are_finite(const std::byte* values, uint64_t bytes) {
  using Watch = FiniteWatch<check>;
  Watch watch;
  uint64_t done = 0;
  for (; done + sizeof(typename Watch::Register) <= bytes; done += sizeof(typename Watch::Register)) {
    typename Watch::Register values_of;
    std::memcpy(&values_of, values + done, sizeof values_of);
    watch.see(values_of);
  }
  bool finite = watch.finite();
  for (; done < bytes; done += sizeof(typename Watch::Bits)) {
    typename Watch::Bits value;
    std::memcpy(&value, values + done, sizeof value);
    finite = finite && (value & Watch::exponent) != Watch::exponent;
  }
  return finite;
}

// Copies parts that fit the first-level cache, and checks each of them there.
bool copy_parts(std::byte* to, const std::byte* from, uint64_t bytes, FiniteCheck check) {
  constexpr uint64_t part = 8 << 10;
  bool finite = true;
  for (uint64_t done = 0; done < bytes; done += part) {
    const uint64_t taken = std::min(part, bytes - done);
    std::memcpy(to + done, from + done, taken);
    finite = all_finite(to + done, taken, check) && finite;
  }
  return finite;
}

#if defined(__x86_64__)
constexpr uint64_t register_bytes = 32, step_bytes = 4 * register_bytes;
constexpr uint64_t shortest_stream_bytes = 4 << 10;  // of shorter rows the head, the tail and the fence cost more

// FiniteWatch::see() on a wider register.
template <FiniteCheck check>
[[gnu::target("avx2"), gnu::always_inline]] inline __m256i overflow(__m256i values) {
  using Watch = FiniteWatch<check>;
  if constexpr (check == FiniteCheck::float32)
    return _mm256_add_epi32(_mm256_and_si256(values, _mm256_set1_epi32(Watch::exponent)),
                            _mm256_set1_epi32(Watch::lowest));
  return _mm256_add_epi64(_mm256_and_si256(values, _mm256_set1_epi64x(Watch::exponent)),
                          _mm256_set1_epi64x(Watch::lowest));
}

// Copies whole steps. Non-temporal stores need `to` aligned to a register. A set sign bit in the result says that a
// value is not finite.
template <FiniteCheck check, bool stream>
[[gnu::target("avx2")]] __m256i copy_steps(std::byte* to, const std::byte* from, uint64_t bytes) {
  __m256i carried = _mm256_setzero_si256();
  for (uint64_t at = 0; at < bytes; at += step_bytes) {
    for (uint64_t i = 0; i < step_bytes; i += register_bytes) {
      const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at + i));
      if constexpr (check != FiniteCheck::none) carried = _mm256_or_si256(carried, overflow<check>(values));
      auto* place = reinterpret_cast<__m256i*>(to + at + i);
      if constexpr (stream)
        _mm256_stream_si256(place, values);
      else
        _mm256_storeu_si256(place, values);
    }
  }
  // Non-temporal stores are weakly ordered: a later store, such as that of a flag, could overtake them.
  if constexpr (stream) _mm_sfence();
  return carried;
}

template <FiniteCheck check>
[[gnu::target("avx2")]] bool copy_wide(std::byte* to, const std::byte* from, uint64_t bytes, bool past_caches) {
  constexpr uint64_t value_bytes = check == FiniteCheck::none ? 1 : static_cast<uint64_t>(check);
  uint64_t head = (register_bytes - reinterpret_cast<uintptr_t>(to) % register_bytes) % register_bytes;
  // The head ends between two values, or the check would see halves.
  const bool stream = past_caches && head % value_bytes == 0 && bytes >= shortest_stream_bytes;
  if (!stream) head = 0;
  const uint64_t wide = (bytes - head) / step_bytes * step_bytes, tail = bytes - head - wide;
  const __m256i carried =
      stream ? copy_steps<check, true>(to + head, from + head, wide) : copy_steps<check, false>(to, from, wide);
  const int signs = check == FiniteCheck::float64 ? _mm256_movemask_pd(_mm256_castsi256_pd(carried))
                                                  : _mm256_movemask_ps(_mm256_castsi256_ps(carried));
  const bool head_finite = copy_parts(to, from, head, check);
  const bool tail_finite = copy_parts(to + bytes - tail, from + bytes - tail, tail, check);
  return head_finite && tail_finite && signs == 0;
}
#endif

}  // namespace

bool all_finite(const std::byte* values, uint64_t bytes, FiniteCheck check) {
  if (check == FiniteCheck::none) return true;
  return check == FiniteCheck::float32 ? are_finite<FiniteCheck::float32>(values, bytes)
                                       : are_finite<FiniteCheck::float64>(values, bytes);
}

bool copy_block(std::byte* to, const std::byte* from, uint64_t bytes, FiniteCheck check, bool past_caches) {
  if (check == FiniteCheck::none && !past_caches) {
    std::memcpy(to, from, bytes);
    return true;
  }
#if defined(__x86_64__)
  if (sdk::cpu_isa() >= sdk::CpuIsa::avx2) {
    if (check == FiniteCheck::float32) return copy_wide<FiniteCheck::float32>(to, from, bytes, past_caches);
    if (check == FiniteCheck::float64) return copy_wide<FiniteCheck::float64>(to, from, bytes, past_caches);
    return copy_wide<FiniteCheck::none>(to, from, bytes, past_caches);
  }
#endif
  return copy_parts(to, from, bytes, check);
}

}  // namespace headroom
